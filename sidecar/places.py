"""The directories of one agent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """Where an agent finds and keeps things. In a pod each is a volume of its own or a part of one.

    Attributes:
        control: The agent's own: its journal. Survives a restart of the worker.
        dataset: The stage, None where there is no dataset.
        claim: Says which dataset fills the stage; lives as long as the stage does. `control` where None.
        checkpoints: What the trainer writes and the agent watches, None where there are none.
        pins: Hard links of what is being uploaded, on the checkpoints' file system and out of the
            trainer's reach.
        outputs: What the trainer writes and the agent uploads as it is, None where there is nothing such.
        temporary: Made for this agent alone and removed at the end, but for what is not durable.
        in_pod: Remedies name annotations rather than options of the command line.
    """

    control: Path
    dataset: Path | None = None
    claim: Path | None = None
    checkpoints: Path | None = None
    pins: Path | None = None
    outputs: Path | None = None
    temporary: tuple[Path, ...] = ()
    in_pod: bool = False
