"""All that an agent is told, parsed once at its entry."""

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
    """One agent's task.

    Attributes:
        spec: What is wished; its lineage is resolved where there are checkpoints or outputs.
        places: The directories.
        dataset_secrets: Mounted Secrets by the datasets' names; the environment counts for the others.
        checkpoint_secret, output_secret: Mounted Secrets; None for the environment.
        settings: How to work.
        run: KFP's run id, None outside KFP.

    Raises:
        InvalidSpec: A part of the spec lacks what it needs.
    """

    spec: FerrySpec
    places: Directories
    dataset_secrets: Mapping[str, Path] = field(default_factory=dict)
    checkpoint_secret: Path | None = None
    settings: Tuning = field(default_factory=Tuning)
    run: str | None = None
    output_secret: Path | None = None

    def __post_init__(self) -> None:
        InvalidSpec.raise_any(self._missing())

    def _missing(self) -> list[Problem]:
        spec, places = self.spec, self.places
        needed = {
            **{_option(one.name): places.datasets.get(one.name) for one in spec.datasets},
            "--checkpoint-dir": spec.checkpoints is None or places.checkpoints,
            "--pins-dir": spec.checkpoints is None or places.pins,
            "--output-dir": spec.outputs is None or places.outputs,
            "the spec's lineage": (spec.checkpoints is None and spec.outputs is None) or spec.lineage,
        }
        return [Problem(f"{name} is missing") for name, present in needed.items() if not present]


def _option(name: str) -> str:
    return f"--dataset-dir {name}=" if name else "--dataset-dir"
