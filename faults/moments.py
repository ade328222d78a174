"""When a worker is killed: a pure function of a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from faults.plan import MIB

DATA, REQUEST, ANSWER, SAVE = "data", "request", "answer", "save"
MOMENTS: Mapping[str, str] = {
    DATA: "a share of the bytes that were still to be sent has passed",
    REQUEST: "a request has come, and the store has not seen it",
    ANSWER: "the store has done what it was asked for, and nobody has heard of it",
    SAVE: "a while after a save has ended",
}
WEIGHTS = (13, 3, 3, 1)
"""Of the moments: most of an upload's time is its data."""
FURTHEST = 12
"""Requests after which a kill by their number comes at the latest: begin, look, parts, complete, commit."""
LONGEST = 2.0
"""Seconds after a save: the agent's look, its pause and its first pass come in this time."""
KILLS = 5
"""In one life of a supervisor: it waits longer before each new start, 10 s in the end."""
SIZES = (96 * MIB, 128 * MIB, 160 * MIB)
"""6 to 10 parts of 16 MiB, of which 4 are in flight; at 64 MiB a second an upload takes two seconds or so."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One moment.

    Attributes:
        kind: A key of `MOMENTS`.
        share: Of the bytes that are still to be sent, of the furthest request, or of the longest time.
        fresh: Whether a new checkpoint is saved before, also where there is still one to send.
    """

    kind: str
    share: float
    fresh: bool

    @property
    def request(self) -> int:
        """Which request or answer from now on, from 1."""
        return 1 + int(self.share * FURTHEST)

    @property
    def seconds(self) -> float:
        """How long after a save."""
        return self.share * LONGEST

    def __str__(self) -> str:
        detail = {DATA: f"{self.share:.0%} of what is left", SAVE: f"{self.seconds:.2f} s after it"}
        return f"{self.kind}: {detail.get(self.kind, f'the {self.request}. from here')}"


@dataclass(frozen=True, slots=True)
class Life:
    """One supervisor's, with its workers.

    Attributes:
        seed: Says all of it.
        count: Elements of the large tensor, 4 bytes each.
        rate: Bytes a second that pass to and from the store.
        kills: In their order.
    """

    seed: int
    count: int
    rate: int
    kills: tuple[Kill, ...]


def life(seed: int, kills: int = KILLS, sizes: Sequence[int] = SIZES) -> Life:
    """The life of a seed.

    Args:
        seed: Any number.
        kills: How many.
        sizes: Bytes of a checkpoint, of which one is taken.
    """
    chance = random.Random(seed)  # noqa: S311 - a plan, no secret
    count = chance.choice(sizes) // 4
    return Life(seed, count, 64 * MIB, tuple(_kill(chance, number) for number in range(kills)))


def _kill(chance: random.Random, number: int) -> Kill:
    """The first comes with a save, and so does each by a time; else a half of them."""
    kind = chance.choices(list(MOMENTS), WEIGHTS)[0]
    fresh = chance.random() < 0.5
    return Kill(kind, chance.random(), fresh=fresh or not number or kind == SAVE)
