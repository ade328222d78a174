"""What all pods of an episode share."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from faults.plan import Plan

ROOT = Path(__file__).parent.parent
"""Where trainers are started: they are modules of this program."""
CHECK_SECONDS = 240.0
"""That a library may take to be imported and to load a checkpoint, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What all pods of an episode share.

    Attributes:
        plan: The episode.
        python: The trainer's interpreter.
        uri: The destination, without the lineage.
        endpoint: The proxy.
        environment: Access to the store, and what libraries need.
        folder: For ledger, logs and clock.
        stop: Ends it early.
    """

    plan: Plan
    python: Path
    uri: str
    endpoint: str
    environment: Mapping[str, str]
    folder: Path
    stop: threading.Event

    @property
    def ledger(self) -> Path:
        """Where the trainers note what they do."""
        return self.folder / "ledger.jsonl"

    @property
    def clock(self) -> Path:
        """Seconds by which the agent's clock is off."""
        return self.folder / "clock"

    def trainer(self, extra: Sequence[str]) -> list[str]:
        """The trainer's command."""
        plan = self.plan
        options: dict[str, object] = {
            "--seed": plan.seed,
            "--steps": plan.steps,
            "--count": plan.count,
            "--ledger": self.ledger,
            "--rotate": plan.rotate,
            "--pace": plan.pace,
            "--asks": plan.asks,
        }
        words = [str(word) for pair in options.items() for word in pair]
        return [str(self.python), "-m", f"faults.writers.{plan.writer}", *words, *extra]


def loader(scene: Scene) -> Callable[[Path], int]:
    """Asks the writer's own library for the step of the checkpoint in a directory."""

    def load(folder: Path) -> int:
        plan = scene.plan
        command = [str(scene.python), "-m", f"faults.writers.{plan.writer}", "--check", str(folder)]
        command += ["--seed", str(plan.seed), "--count", str(plan.count)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            timeout=CHECK_SECONDS,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-1000:])
        return int(done.stdout.split()[-1])

    return load
