"""The configuration of one agent, parsed once at its entry point."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from podferry.contract.cache_api import Holder
from podferry.contract.code_version import CodeVersion
from podferry.contract.destination.provenance import RunOrigin
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.location_guards import LocationGuards
from podferry.contract.pod_binding import PodBinding
from podferry.contract.spec import FerrySpec
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.config.tuning import Tuning


class ProgramRun(msgspec.Struct, frozen=True):
    """A run of a program outside Kubernetes.

    Attributes:
        origin: Its program and place.
        prefixes: What the lineages of its program begin with; empty if the user has named the lineage.
        former: The lineages that podferry 0.1 gave to its command.
        in_python: It calls `ferry`: its settings are keywords.
        code: Its script, if it has one.
    """

    origin: RunOrigin
    prefixes: tuple[str, ...] = ()
    former: tuple[str, ...] = ()
    in_python: bool = False
    code: CodeVersion | None = None

    def option(self, name: str, value: str) -> str:
        """A setting as the user writes it."""
        return f'{name}="{value}"' if self.in_python else f"--{name} {shlex.quote(value)}"


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """What one agent has to do.

    Attributes:
        spec: The request; has a lineage if there are checkpoints or outputs.
        directories: Where the agent keeps its files and finds the trainer's.
        dataset_secrets: Mounted Secrets by dataset name; other datasets use the environment's credentials.
        holders: Caches to ask first, by dataset name.
        shared: Mounts of the stages that holders share with the pod, by dataset name.
        checkpoint_secret, output_secret: Mounted Secrets; None for the environment.
        tuning: How to work.
        run_id: KFP's run id; None outside KFP.
        in_pod: Remedies name annotations, not command-line options.
        program: What it runs for, outside Kubernetes.
        binding: The pod that was injected, and the one in which it runs; None outside Kubernetes.
        guards: What locations only the agent can check; None outside Kubernetes.
        code: What the training runs, as far as it is known.

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
    program: ProgramRun | None = None
    binding: PodBinding | None = None
    guards: LocationGuards | None = None
    code: CodeVersion | None = None
    holders: Mapping[str, Holder] = field(default_factory=dict)
    shared: Mapping[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        InvalidSpec.raise_any(self._missing())

    def _missing(self) -> list[Problem]:
        spec, directories = self.spec, self.directories
        required = {
            **{_option(one.name): directories.datasets.get(one.name) for one in spec.datasets},
            **{_option(one.name, "shared"): self.shared.get(one.name) for one in spec.shared},
            "--checkpoint-dir": spec.checkpoints is None or directories.checkpoints,
            "--pins-dir": spec.checkpoints is None or directories.holds,
            "--output-dir": spec.outputs is None or directories.outputs,
            "the spec's lineage": (spec.checkpoints is None and spec.outputs is None) or spec.lineage,
        }
        return [Problem(f"{name} is missing") for name, present in required.items() if not present]


def _option(name: str, kind: str = "dataset") -> str:
    return f"--{kind}-dir {name}=" if name else f"--{kind}-dir"


def encode_program_run(run: ProgramRun) -> str:
    """The value of `--program`: one line of JSON."""
    return msgspec.json.encode(run).decode()


def decode_program_run(text: str) -> ProgramRun:
    """Read the value of `--program`; raises `InvalidSpec`."""
    try:
        return msgspec.json.decode(text, type=ProgramRun)
    except msgspec.MsgspecError as error:
        raise InvalidSpec.of("--program is invalid", str(error)) from error
