"""The configuration of one agent, parsed once at its entry point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.spec import FerrySpec
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.config.tuning import Tuning


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """What one agent has to do.

    Attributes:
        spec: The request; has a lineage if there are checkpoints or outputs.
        directories: Where the agent keeps its files and finds the trainer's.
        dataset_secrets: Mounted Secrets by dataset name; other datasets use the environment's credentials.
        checkpoint_secret, output_secret: Mounted Secrets; None for the environment.
        tuning: How to work.
        run_id: KFP's run id; None outside KFP.
        in_pod: Remedies name annotations, not command-line options.

    Raises:
        InvalidSpec: A part of the spec lacks its directory or lineage.
    """

    spec: FerrySpec
    directories: Directories
    dataset_secrets: Mapping[str, Path] = field(default_factory=dict)
    checkpoint_secret: Path | None = None
    tuning: Tuning = field(default_factory=Tuning)
    run_id: str | None = None
    output_secret: Path | None = None
    in_pod: bool = False

    def __post_init__(self) -> None:
        InvalidSpec.raise_any(self._missing())

    def _missing(self) -> list[Problem]:
        spec, directories = self.spec, self.directories
        required = {
            **{_option(one.name): directories.datasets.get(one.name) for one in spec.datasets},
            "--checkpoint-dir": spec.checkpoints is None or directories.checkpoints,
            "--pins-dir": spec.checkpoints is None or directories.holds,
            "--output-dir": spec.outputs is None or directories.outputs,
            "the spec's lineage": (spec.checkpoints is None and spec.outputs is None) or spec.lineage,
        }
        return [Problem(f"{name} is missing") for name, present in required.items() if not present]


def _option(name: str) -> str:
    return f"--dataset-dir {name}=" if name else "--dataset-dir"
