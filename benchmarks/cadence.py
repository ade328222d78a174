"""What podferry costs a trainer that saves at a constant rate: CPU of the agent, and the trainer's step."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from agents import Agent
from contention import LEAST, idle, trainers_core
from harness import Command, Contest, Finding
from serving import MIB
from uploads import TRAINING, empty


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often how much is saved.

    Attributes:
        size: Bytes of a checkpoint: an archive, as of torch.save.
        saves: In one run.
        seconds: Between two saves.
    """

    size: int
    saves: int
    seconds: float

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.size * 60 / self.seconds / MIB:.0f} MiB a minute"


class Costs:
    """A trainer under an agent, against the same without one, and the agent's CPU time meanwhile."""

    def __init__(self, how: Cadence, folder: Path, agent: Agent) -> None:
        self._how = how
        self._agent = agent
        self._plain = folder / "plain"
        self._plain.mkdir()
        self._started = 0.0
        self._used: list[float] = []

    def contest(self) -> Contest:
        """Of the step's time; the agent is idle before each run."""
        alone = Command(
            self._words(self._plain),
            before=lambda: idle(self._agent),
            after=lambda: empty(self._plain),
            prints_seconds=True,
        )
        return Contest(
            f"a step of a trainer that writes {self._how.title}",
            ours=Command(
                self._words(self._agent.checkpoints),
                before=self._start,
                after=self._end,
                prints_seconds=True,
            ),
            peers={"no podferry": alone},
            limit=alone,
            least={"no podferry": LEAST},
            noise=True,
        )

    def finding(self) -> Finding:
        """The agent's CPU time, without that of the first round, which warms up."""
        used = [seconds * 60 / (self._how.saves * self._how.seconds) for seconds in self._used[1:]]
        found = f"{median(used):.2f} s a minute ({min(used):.2f} to {max(used):.2f} in {len(used)} runs)"
        return Finding(f"the agent's CPU time, a trainer writing {self._how.title}", found, "reported", True)

    def _words(self, folder: Path) -> list[str]:
        how = self._how
        numbers = (how.size, how.saves, how.seconds, trainers_core())
        return [sys.executable, TRAINING, "train", str(folder), *map(str, numbers)]

    def _start(self) -> None:
        idle(self._agent)
        self._started = self._agent.cpu()

    def _end(self) -> None:
        """Wait until everything is durable: then what it cost is complete.

        A starved agent may not even have seen the last checkpoint when the trainer ends.
        """
        last = f"step-{self._how.saves}"
        self._agent.wait_until(
            lambda status: not status.pending and last in [one.name for one in status.durable[-1:]]
        )
        self._used.append(self._agent.cpu() - self._started)
