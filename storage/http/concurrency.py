"""Decides how many connections a pool needs, from samples of its own progress. Pure.

A loop that is busy has enough of them: more would only wait for the processor. A loop that waits needs more
in proportion: if 8 connections use a tenth of a core, 80 keep the core busy, whether the time goes into the
first byte or into a slow connection. If more connections do not transfer more, the link or the server is the
limit, and they are closed again.
"""

from __future__ import annotations

from collections import deque

import msgspec

INITIAL_CONNECTIONS = 8
"""They fill a core if the server is near."""
BUSY_SHARE = 0.85
"""Share of a core from which more connections gain nothing."""
MAX_GROWTH = 8
"""Largest factor of one step: the first responses of a cold server say little."""
MIN_SPEEDUP = 1.1
"""How much faster the transfer must be to keep the added connections: less is noise."""
TRIAL_SAMPLES = 3
"""Samples until added connections are judged: their first requests must complete."""
HOLD_SAMPLES, RATE_LIMITED_HOLD_SAMPLES = 64, 1024
"""Samples until growth is tried again: two seconds after it gained nothing, half a minute after the server
asked for less."""


class Sample(msgspec.Struct, frozen=True):
    """Progress of a pool: totals, or what `-` leaves between two of them.

    Attributes:
        seconds: Time.
        cpu: Seconds that this thread ran or was ready to run: on a shared machine, or under a CPU limit, it
            is fully busy while it waits for a processor.
        bytes: Received.
        jobs: Completed.
    """

    seconds: float
    cpu: float
    bytes: int
    jobs: int

    def __sub__(self, before: Sample) -> Sample:
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(before), strict=True)
        return Sample(*(now - then for now, then in pairs))


class ConcurrencyController:
    """Adapts the target `connections` after each sample, up to what memory and the work allow."""

    def __init__(self, max_connections: int, initial: int = INITIAL_CONNECTIONS) -> None:
        self._max = max(1, max_connections)
        self.connections = min(initial, self._max)
        self._before_trial: tuple[int, float] | None = None
        self._trial_samples = 0
        self._warmed_up = False
        self._ceiling, self._hold = self._max, 0
        self._missed = 0.0
        self._recent = deque[float](maxlen=TRIAL_SAMPLES)

    def update(self, sample: Sample) -> None:
        """Set `connections` to what the sample suggests."""
        if sample.seconds <= 0 or not (sample.jobs or sample.bytes):
            return
        if not self._warmed_up:  # most of the first sample went into connecting: not representative
            self._warmed_up = True
            return
        self._hold -= 1
        self._recent.append(_rate(sample))
        if self._hold <= 0 or self._was_burst:
            self._ceiling, self._missed = self._max, 0.0
        if self._before_trial is not None:
            self._judge_trial(sample, *self._before_trial)
            return
        busy = sample.cpu / sample.seconds
        if busy < BUSY_SHARE and self.connections < self._ceiling:
            self._start_trial(sample, max(busy, 1 / MAX_GROWTH))

    def slow_down(self) -> None:
        """The server is rate limiting: halve the target and do not exceed it for a while."""
        self.connections = max(1, self.connections // 2)
        self._before_trial, self._missed = None, 0.0
        self._ceiling, self._hold = self.connections, RATE_LIMITED_HOLD_SAMPLES

    @property
    def _was_burst(self) -> bool:
        """Whether growth seemed useless because of a burst before it: that rate has not been kept up."""
        full = len(self._recent) == TRIAL_SAMPLES
        return full and MIN_SPEEDUP * sum(self._recent) / TRIAL_SAMPLES < self._missed

    def _start_trial(self, sample: Sample, busy: float) -> None:
        self._before_trial, self._trial_samples = (self.connections, _rate(sample)), 0
        self.connections = min(max(self.connections + 1, int(self.connections / busy)), self._ceiling)

    def _judge_trial(self, sample: Sample, connections_before: int, rate_before: float) -> None:
        """End the trial once growth has paid off, or has failed to and is undone."""
        self._trial_samples += 1
        if _rate(sample) >= MIN_SPEEDUP * rate_before:
            self._before_trial = None
        elif self._trial_samples >= TRIAL_SAMPLES:
            self.connections, self._before_trial = connections_before, None
            self._ceiling, self._hold = connections_before, HOLD_SAMPLES
            self._missed = rate_before
            self._recent.clear()


def _rate(sample: Sample) -> float:
    """Bytes per second; each object counts as 4 KiB more, so that empty ones count."""
    return (sample.bytes + 4096 * sample.jobs) / sample.seconds
