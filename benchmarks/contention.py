"""How much an upload slows a trainer: its writes and its steps.

The rate is that of a network link, through podferry's own `upload-limit`. The server stands for another
machine: it stays on the cores that the trainer leaves free. The agent may use every core, as in a pod, at the
nice value of `agents.GENTLE`, which stands for the small CPU shares of its container.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from agents import Agent
from harness import Command, Contest, Finding
from serving import MIB
from training import write
from uploads import TRAINING, empty

from podferry.contract.destination.private_names import PRIVATE

LEAST = 0.95


@dataclass(frozen=True, slots=True)
class Contention:
    """How much is written and sent.

    Attributes:
        size: Bytes of a checkpoint.
        rate: Bytes a second of its upload.
        steps: Of the trainer, in a time that the upload takes as well.
    """

    size: int
    rate: int
    steps: int


class Overlaps:
    """Whether uploads outlived the work next to them: only such rounds measure what an upload costs."""

    def __init__(self, agent: Agent, work: str) -> None:
        self._agent, self._work = agent, work
        self._rounds = self._over = 0

    def look(self, checkpoint: str) -> None:
        """After the work of a round: is this checkpoint still being sent?"""
        self._rounds += 1
        self._over += checkpoint not in self._agent.status().pending

    def finding(self) -> Finding:
        """In how many rounds the upload was over too early, as on a machine that starves the trainer."""
        found = f"{self._over} of {self._rounds}"
        return Finding(f"rounds whose upload was over before {self._work}", found, "0", not self._over)


def trainers_core() -> int:
    """The core that is the trainer's."""
    return max(os.sched_getaffinity(0))


def idle(agent: Agent) -> None:
    """Remove the files of the directory, wait until nothing is in flight, and remove what was sent.

    So all find as much memory free: pages that were in use a moment ago are quicker than untouched ones.
    """
    empty(agent.checkpoints)
    agent.wait_until(lambda status: not status.pending)
    for sent in agent.held.iterdir():
        if sent.name != PRIVATE:
            shutil.rmtree(sent)


def save(agent: Agent, path: Path, how: Contention) -> None:
    """Write a checkpoint, and wait until the agent holds it: it reads it at full speed first, then sends."""
    idle(agent)
    write(path, how.size)
    agent.wait_until(lambda status: status.pending_since is not None)


def writing(how: Contention, folder: Path, agent: Agent, overlaps: Overlaps) -> Contest:
    """A checkpoint is written while the one before is being sent, against the same without podferry."""
    plain = folder / "plain"
    plain.mkdir()
    former = agent.checkpoints / "step-1.bin"

    def words(path: Path) -> list[str]:
        return [sys.executable, TRAINING, "write", str(path), str(how.size), str(trainers_core())]

    def still_sending() -> None:
        overlaps.look(former.stem)
        empty(agent.checkpoints)

    def before_alone() -> None:
        idle(agent)
        write(plain / former.name, how.size)

    alone = Command(
        words(plain / "step-2.bin"), before=before_alone, after=lambda: empty(plain), prints_seconds=True
    )
    watched = agent.checkpoints / "step-2.bin"
    return Contest(
        f"{how.size // MIB} MiB written, podferry sending the one before at {how.rate // MIB} MiB/s",
        ours=Command(
            words(watched), before=lambda: save(agent, former, how), after=still_sending, prints_seconds=True
        ),
        peers={"plain tmpfs": alone},
        limit=alone,
        least={"plain tmpfs": LEAST},
        noise=True,
    )


def stepping(how: Contention, agent: Agent, overlaps: Overlaps) -> Contest:
    """A trainer computes while a checkpoint is being read and sent, against the same without podferry."""
    words = [sys.executable, TRAINING, "steps", str(how.steps), str(trainers_core())]
    saved = agent.checkpoints / "step-1.bin"
    alone = Command(words, before=lambda: idle(agent), prints_seconds=True)
    return Contest(
        f"a step on a core, podferry sending {how.size // MIB} MiB at {how.rate // MIB} MiB/s",
        ours=Command(
            words,
            before=lambda: save(agent, saved, how),
            after=lambda: overlaps.look(saved.stem),
            prints_seconds=True,
        ),
        peers={"no podferry": alone},
        limit=alone,
        least={"no podferry": LEAST},
        noise=True,
    )
