"""Computes the lineage of a training task in a step that got the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from podferry.contract.code_version import UNKNOWN_CODE, CodeVersion
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.kfp_inputs import KfpInputs, read_kfp_inputs
from podferry.contract.lineage import LOCAL, lineage_of, lineage_problem
from podferry.contract.pod_owner import KFP, PodOwner, sibling_task, variables_of
from podferry.contract.variable_substitution import expand

INPUT_PREFIX = "of{}--"
"""Of the inputs of the training with that number."""
ARTIFACT_SLOTS = ("artifact0", "artifact1", "artifact2", "artifact3")
"""The step's own inputs for the training's artifacts: KFP accepts only artifacts that its function names."""
SETTINGS = frozenset(
    {
        *("checkpoints", "lineage", "world", "endpoint", "region"),
        *("checkpoints-endpoint", "checkpoints-region"),
    }
)
"""The annotations that say where a task's checkpoints are."""
NAMESPACE_VARIABLE = "PODFERRY_NAMESPACE"
NODE_VARIABLE = "PODFERRY_NODE_NAME"
"""Set from the pod's own fields; KFP's local runner sets none."""


class TrainedTask(msgspec.Struct, frozen=True, omit_defaults=True):
    """A training task, as far as it is known when the pipeline is compiled.

    Attributes:
        task: Its name in its pipeline.
        function: The function that it executes; empty for a container component.
        injected: Whether it has podferry annotations.
        settings: Those of `SETTINGS`, with their variables.
        artifacts: Which of the step's artifacts is which of its inputs.
        code: What it runs.
    """

    task: str
    function: str = ""
    injected: bool = False
    settings: dict[str, str] = {}
    artifacts: dict[str, str] = {}
    code: CodeVersion = UNKNOWN_CODE

    def setting(self, name: str) -> str:
        """A setting of its checkpoints, or else of all its places; empty if there is none."""
        return self.settings.get(f"checkpoints-{name}") or self.settings.get(name, "")


@dataclass(frozen=True, slots=True)
class TrainedPlace:
    """Where the checkpoints of a training task are.

    Attributes:
        checkpoints: The destination.
        lineages: The lineage, then those that it may have instead, if nothing is there.
        endpoint, region: Of the store; empty for the vendor's.
    """

    checkpoints: str
    lineages: tuple[str, ...]
    endpoint: str = ""
    region: str = ""


def places_of(
    of: Sequence[Mapping[str, Any]],
    checkpoints: str,
    command: Sequence[str],
    environ: Mapping[str, str],
) -> list[TrainedPlace]:
    """Where the checkpoints of training tasks are.

    Args:
        of: The tasks, as `podferry.components.trained_task.carry` describes them.
        checkpoints: A destination for all of them, instead of their own; empty for their own.
        command: The step's, with its inputs.
        environ: The step's.

    Raises:
        InvalidSpec: A setting has no value in this run.
    """
    own = read_kfp_inputs(command)
    if own is None:
        raise InvalidSpec.of("of= needs a step of KFP", remedy="Give lineages= instead")
    tasks = [msgspec.convert(one, TrainedTask) for one in of]
    found = [
        _place(task, _inputs_of(task, own, INPUT_PREFIX.format(index)), checkpoints, environ)
        for index, task in enumerate(tasks)
    ]
    InvalidSpec.raise_any(
        problem for place in found for one in place.lineages if (problem := lineage_problem(one))
    )
    return found


def _inputs_of(task: TrainedTask, own: KfpInputs, prefix: str) -> KfpInputs:
    """The inputs that the training task has got."""
    parameters = {
        name.removeprefix(prefix): value for name, value in own.parameters.items() if name.startswith(prefix)
    }
    artifacts = {name: own.artifacts[slot] for name, slot in task.artifacts.items() if slot in own.artifacts}
    return msgspec.structs.replace(own, parameters=parameters, artifacts=artifacts)


def _place(
    task: TrainedTask, inputs: KfpInputs, checkpoints: str, environ: Mapping[str, str]
) -> TrainedPlace:
    owners = _owners(task, inputs, environ)
    variables = variables_of(owners[0], inputs, _world(task), task.code)
    settings = {name: expand(text, variables) for name, text in task.settings.items()}
    destination = checkpoints or settings.get("checkpoints", "")
    if not destination:
        what, remedy = f"{task.task} has no destination for checkpoints", "Give checkpoints="
        raise InvalidSpec(Problem(what, "", remedy))
    resolved = msgspec.structs.replace(task, settings=settings)
    named = settings.get("lineage")
    lineages = (named,) if named else tuple(map(lineage_of, owners))
    return TrainedPlace(destination, lineages, resolved.setting("endpoint"), resolved.setting("region"))


def _owners(task: TrainedTask, inputs: KfpInputs, environ: Mapping[str, str]) -> list[PodOwner]:
    """The owner that the webhook finds, if it injects the task, and the one that `ferry` finds."""
    by_ferry = PodOwner(LOCAL, KFP, "", LOCAL, task.function, inputs.digest, inputs.run_id)
    namespace = environ.get(NAMESPACE_VARIABLE)
    if not namespace:
        return [by_ferry]
    name = sibling_task(environ.get(NODE_VARIABLE, ""), task.task)
    by_webhook = PodOwner(namespace, KFP, "", inputs.pipeline, name, inputs.digest, inputs.run_id)
    return [by_webhook, by_ferry] if task.injected else [by_ferry]


def _world(task: TrainedTask) -> int | None:
    text = task.settings.get("world", "")
    return int(text) if text.isdecimal() else None
