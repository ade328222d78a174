"""The directories of one agent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podferry.contract.errors import Problem


@dataclass(frozen=True, slots=True)
class Directories:
    """Where an agent finds and keeps things. In a pod each is a volume of its own or a part of one.

    Attributes:
        control: The agent's own: its journal. Survives a restart of the worker.
        datasets: The stages, by the datasets' names; the empty name is that of the one without a name.
        claims: Say which dataset fills a stage, by the same names; live as long as the stages do. Those
            that are not here lie below `control`.
        checkpoints: What the trainer writes and the agent watches, None where there are none.
        pins: Hard links of what is being uploaded, on the checkpoints' file system and out of the
            trainer's reach.
        outputs: What the trainer writes and the agent uploads as it is, None where there is nothing such.
        temporary: Made for this agent alone and removed at the end, but for what is not durable.
        in_pod: Remedies name annotations rather than options of the command line.
    """

    control: Path
    datasets: Mapping[str, Path] = field(default_factory=dict)
    claims: Mapping[str, Path] = field(default_factory=dict)
    checkpoints: Path | None = None
    pins: Path | None = None
    outputs: Path | None = None
    temporary: tuple[Path, ...] = ()
    in_pod: bool = False

    def claim(self, name: str) -> Path:
        """The directory that says which dataset fills the stage of a dataset."""
        return self.claims.get(name) or (self.control / "claims" / name if name else self.control)


def sibling_dir(directory: Path) -> Path:
    """What belongs to a directory of the user's lies beside it, never in it: a trainer lists it."""
    return directory.with_name(directory.name + ".podferry")


def ensure_dir(path: Path) -> Problem | None:
    """Make a directory, unless it is there; why it cannot be made or written, None where it can."""
    what = f"the directory {path} cannot be made"
    if not path.parent.is_dir():
        nearest = next(parent for parent in path.parents if parent.is_dir())
        return Problem(what, f"{nearest} is the nearest that exists", f"Run `mkdir -p {path}`")
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        return Problem(what, str(error.strerror), "Choose a place that takes writes")
    if not os.access(path, os.W_OK | os.X_OK):
        return Problem(f"the directory {path} takes no writes", remedy="Choose another, or change its mode")
    return None
