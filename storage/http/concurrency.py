"""How many connections a lane needs, from what it sees while it works. Pure.

A loop that is busy has enough of them: more would only wait for the processor. One that waits needs as many
more as it waits: with 8 connections and a tenth of a core in use, 80 keep the core busy, whether the time
goes into the first byte or into a slow connection. Where more connections bring no more bytes, the link or
the server is the limit, and they are given back.
"""

from __future__ import annotations

import msgspec

INITIAL_CONNECTIONS = 8
"""Connections to begin with: they fill a core where the server is near."""
BUSY = 0.85
"""Share of a core in use from which more connections bring nothing."""
STEP = 8
"""The most that one look multiplies them by: the first answers of a cold server say little."""
GAIN = 1.1
"""How much faster it must go after there are more of them, to keep them: less is noise."""
PATIENCE = 3
"""Looks after growing until the gain is judged: what is under way must come first."""
CALM, LONG_CALM = 64, 1024
"""Looks until it is tried again with more: two seconds where more brought nothing, which one burst before may
have made so, and half a minute where the server asked for less."""


class Sample(msgspec.Struct, frozen=True):
    """What was seen since the look before.

    Attributes:
        seconds: How long that is.
        cpu: Seconds that this thread ran, or was ready to: on a machine that others use too, or with a limit
            of its own, it is as busy as it can be while it waits for a processor.
        bytes: That came.
        jobs: That were finished.
    """

    seconds: float
    cpu: float
    bytes: int
    jobs: int


class ConcurrencyController:
    """Decides after each look.

    Attributes:
        connections: As many as there should be.

    Args:
        most: Connections that memory and the work allow.
        first: Connections to begin with.
    """

    def __init__(self, most: int, first: int = INITIAL_CONNECTIONS) -> None:
        self._most = max(1, most)
        self.connections = min(first, self._most)
        self._before: tuple[int, float] | None = None
        self._since = 0
        self._begun = False
        self._ceiling, self._calm = self._most, 0

    def look(self, seen: Sample) -> int:
        """How many connections there should be from now on."""
        if seen.seconds <= 0 or not (seen.jobs or seen.bytes):
            return self.connections
        if not self._begun:  # most of this look went into connecting, and says nothing of what comes
            self._begun = True
            return self.connections
        self._calm -= 1
        if self._calm <= 0:
            self._ceiling = self._most
        if self._before is not None:
            self._judge(seen)
            return self.connections
        busy = seen.cpu / seen.seconds
        if busy < BUSY and self.connections < self._ceiling:
            self._grow(seen, max(busy, 1 / STEP))
        return self.connections

    def slow_down(self) -> int:
        """The server asks for less: half of them, and no more than that for a while."""
        self.connections = max(1, self.connections // 2)
        self._before = None
        self._stay(LONG_CALM)
        return self.connections

    def _stay(self, looks: int) -> None:
        self._ceiling, self._calm = self.connections, looks

    def _grow(self, seen: Sample, busy: float) -> None:
        self._before, self._since = (self.connections, _rate(seen)), 0
        self.connections = min(max(self.connections + 1, int(self.connections / busy)), self._ceiling)

    def _judge(self, seen: Sample) -> None:
        """Whether growing has paid; what did not is taken back for a while."""
        assert self._before is not None  # noqa: S101 - only after growing
        fewer, rate = self._before
        self._since += 1
        if _rate(seen) >= GAIN * rate:
            self._before = None
        elif self._since >= PATIENCE:
            self.connections, self._before = fewer, None
            self._stay(CALM)


def _rate(seen: Sample) -> float:
    """Bytes a second; an object counts as some too, so that empty ones are not nothing."""
    return (seen.bytes + 4096 * seen.jobs) / seen.seconds
