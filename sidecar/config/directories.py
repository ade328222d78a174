"""The directories of one agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podferry.sidecar.config.run_directory import RunDirectory


@dataclass(frozen=True, slots=True)
class Directories:
    """Where an agent keeps its files and finds the trainer's. In a pod each is a volume or part of one.

    Attributes:
        control: The agent's own, with its journal. Survives a restart of the worker.
        datasets: Staging directories by dataset name; the unnamed dataset has an empty name.
        ownership: Directories of the staging directories' ownership records, by the same names. Each lives
            as long as its staging directory. A missing one is below `control`.
        checkpoints: Written by the trainer, watched by the agent.
        holds: Hard links of what is being uploaded: on the checkpoints' file system, out of the trainer's
            reach.
        outputs: Written by the trainer, uploaded as it is.
        temporary: Made for this agent alone; removed at the end unless they hold what is not durable.
        run: The local run, removed after all of them; None in a pod.
    """

    control: Path
    datasets: Mapping[str, Path] = field(default_factory=dict)
    ownership: Mapping[str, Path] = field(default_factory=dict)
    checkpoints: Path | None = None
    holds: Path | None = None
    outputs: Path | None = None
    temporary: tuple[Path, ...] = ()
    run: RunDirectory | None = None

    @property
    def has_temporary_checkpoints(self) -> bool:
        """Whether the checkpoint directory was made for this agent: holds do not outlive `control` then."""
        checkpoints = self.checkpoints
        return checkpoints is not None and any(map(checkpoints.is_relative_to, self.temporary))

    def ownership_of(self, name: str) -> Path:
        """The directory of a dataset's ownership record."""
        return self.ownership.get(name) or (self.control / "claims" / name if name else self.control)
