"""The directories of one agent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podferry.contract.errors import Problem
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


def sibling_dir(directory: Path) -> Path:
    """Podferry's own files for a user's directory: next to it, since a trainer lists what is in it."""
    return directory.with_name(directory.name + ".podferry")


def ensure_dir(path: Path) -> Problem | None:
    """Create a directory unless it exists; the problem if it cannot be created or written."""
    what = f"the directory {path} cannot be created"
    if not path.parent.is_dir():
        nearest = next(parent for parent in path.parents if parent.is_dir())
        return Problem(what, f"{nearest} is the nearest that exists", f"Run `mkdir -p {path}`")
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError as error:
        return Problem(what, str(error.strerror), "Choose another name, or move the file away")
    except OSError as error:
        return Problem(what, str(error.strerror), "Choose a writable place")
    if not os.access(path, os.W_OK | os.X_OK):
        return Problem(f"the directory {path} is not writable", remedy="Choose another, or change its mode")
    return None
