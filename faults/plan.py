"""What happens in an episode: a pure function of its seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from faults.known import KNOWN, Known

MIB = 1 << 20

PROCESS: Mapping[str, str] = {
    "kill worker": "kill -9 of the agent's worker",
    "kill agent": "kill -9 of supervisor and worker; a sidecar is started again as it was",
    "kill trainer": "kill -9 of the trainer, between or in its saves",
    "stop trainer": "SIGSTOP to the trainer for longer than the agent's pauses, often in a save",
    "kill in a save": "kill -9 of the trainer by a timer of the kernel, in the middle of a save",
    "kill all": "kill -9 of everything in the pod: the node has gone",
    "kill launcher": "kill -9 of all but the agent, which continues while the next pod already starts",
}
STORE: Mapping[str, str] = {
    "500": "InternalError",
    "503": "SlowDown",
    "reset in a request": "the connection is reset while a body is sent",
    "reset in an answer": "the connection is reset while an answer comes",
    "lost answer": "the store does what it was asked for, and its answer never comes",
    "truncated request": "a body ends early",
    "truncated answer": "an answer ends early",
    "flipped request": "bits of a body are flipped on the way to the store",
    "flipped answer": "bits of an object are flipped on the way from the store",
    "stall": "nothing moves for a while",
    "expired credentials": "ExpiredToken for a while",
    "overwrite in place": "a body is held until the trainer has overwritten the file that it is read from",
}
PLACE: Mapping[str, str] = {
    "full volume": "the checkpoint volume is full but for a part of a checkpoint",
    "clock jump": "the agent's clock jumps",
}
ENDS = ("kill trainer", "kill in a save", "kill all", "kill launcher", "full volume")
"""Faults that end a pod."""
OFTEN = (
    *("kill worker",) * 4,
    *("kill agent",) * 2,
    *("clock jump",) * 2,
    *("stop trainer",) * 3,
)
"""Those that come more often than a single kind of the store's faults."""
READING = (
    "500",
    "503",
    "reset in an answer",
    "truncated answer",
    "flipped answer",
    "stall",
    "expired credentials",
)
"""Faults of the store that a restore meets."""
JUMPS = (-86400.0 * 400, -3600.0, -30.0, 30.0, 3600.0, 86400.0 * 400)
"""Seconds by which the clock jumps."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        kind: A key of `PROCESS`, `STORE` or `PLACE`.
        save: Counted over all pods: it comes when that many saves have begun. 0 for faults at a pod's start.
        pod: The pod at whose start it comes; 0 for faults at a save.
        delay: Seconds after that.
        count: Requests that it hits.
        part: Where in a body or in a save, as a share.
        seconds: For how long, or how far a clock jumps.
        commits: Whether it hits the commit's own request rather than those of data.
    """

    kind: str
    save: int = 0
    pod: int = 0
    delay: float = 0.0
    count: int = 1
    part: float = 0.5
    seconds: float = 0.0
    commits: bool = False

    def __str__(self) -> str:
        when = f"save {self.save}" if self.save else f"start of pod {self.pod}"
        place = "of a commit" if self.commits else "of data"
        how = f"part {self.part:.2f}, {self.seconds:g} s, x{self.count}, {place}"
        return f"{self.kind} at {when} + {self.delay:.2f} s, {how}"


@dataclass(frozen=True, slots=True)
class Plan:
    """An episode.

    Attributes:
        seed: Says all of it.
        writer: A key of `KNOWN`.
        sidecar: Whether the agent runs as a pod's sidecar does, else around the trainer by `podferry run`.
        steps: Saves of an undisturbed trainer.
        count: Elements of the large tensor, 4 bytes each.
        rotate: Steps that the trainer keeps; 0 keeps all.
        pace: Seconds between two saves, at most.
        asks: Share of the saves for whose durability the trainer asks.
        rate: Bytes a second that pass to and from the store.
        deleted: Saves after which the pod is deleted (SIGTERM), so that there is always a restore.
        faults: In the order in which they come.
    """

    seed: int
    writer: str
    sidecar: bool
    steps: int
    count: int
    rotate: int
    pace: float
    asks: float
    rate: int
    deleted: int
    faults: tuple[Fault, ...]


def plan(seed: int, writers: Sequence[str]) -> Plan:
    """The episode of a seed.

    Args:
        seed: Any number.
        writers: Names of those that can be had; which one it is depends on them, the rest does not.
    """
    chance = random.Random(seed)  # noqa: S311 - a plan, no secret
    pick = chance.random()
    steps = chance.randint(5, 8)
    count = chance.choices([MIB // 4, MIB, 5 * MIB], [5, 4, 2])[0]
    made = Plan(
        seed=seed,
        writer=_weighted(pick, [KNOWN[name] for name in writers]).name,
        sidecar=chance.random() < 0.5,
        steps=steps,
        count=count,
        rotate=chance.choice([0, 2, 3]),
        pace=chance.choice([0.6, 1.5, 2.5]),
        asks=chance.choice([0.0, 0.3]),
        rate=max(4 * MIB, count * 4 // 2),
        deleted=chance.randint(3, steps),
        faults=(),
    )
    faults = [_end(chance, steps) for _ in range(chance.randint(1, 2))]
    faults += [_other(chance, steps) for _ in range(chance.randint(5, 9))]
    fitting = [_fitting(fault, KNOWN[made.writer]) for fault in faults]
    return replace(
        made, faults=tuple(sorted(fitting, key=lambda fault: (fault.save, fault.pod, fault.delay)))
    )


def _weighted(pick: float, known: Sequence[Known]) -> Known:
    total = sum(writer.weight for writer in known) or 1
    for writer in known:
        pick -= writer.weight / total
        if pick < 0:
            return writer
    return known[-1]


def _end(chance: random.Random, steps: int) -> Fault:
    kind = chance.choice(ENDS)
    delay = 0.0 if kind == "kill in a save" else chance.uniform(0, 3)
    return Fault(
        kind,
        chance.randint(2, steps),
        delay=delay,
        part=chance.uniform(0.05, 1.0),
        seconds=chance.uniform(2, 6),
    )


def _other(chance: random.Random, steps: int) -> Fault:
    """A fault that need not end the pod; half of those of the store's come while a pod restores."""
    kind = chance.choice(
        [*STORE, *["kill worker"] * 4, *["kill agent"] * 2, *["clock jump"] * 2, *["stop trainer"] * 3]
    )
    fault = Fault(
        kind,
        delay=chance.uniform(0, 2.5),
        count=chance.randint(1, 3),
        part=chance.random(),
        seconds=chance.choice(JUMPS) if kind == "clock jump" else chance.uniform(0.5, 4),
        commits=chance.random() < 0.35,
    )
    if kind == "stop trainer":
        return replace(
            fault, save=chance.randint(1, steps), delay=chance.uniform(0, 0.3), seconds=chance.uniform(1.5, 8)
        )
    at_start = chance.random() < (0.5 if kind in READING else 0.2)
    save, pod = chance.randint(1, steps), chance.randint(2, 3)
    if at_start and kind != "overwrite in place":
        return replace(fault, pod=pod, delay=0.0 if kind in STORE else fault.delay)
    return replace(fault, save=save)


def _fitting(fault: Fault, writer: Known) -> Fault:
    """An overwrite in place needs a writer that does so; the others have their answers lost instead.

    Such writers have more of them: they stand for all stalls at a save.
    """
    if fault.kind == "stall" and fault.save and writer.in_place:
        return replace(fault, kind="overwrite in place")
    if fault.kind == "overwrite in place" and not writer.in_place:
        return replace(fault, kind="lost answer")
    return fault
