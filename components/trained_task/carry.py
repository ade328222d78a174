"""Passes the inputs of a training task to a step that looks for its checkpoints.

A lineage contains the hash of the training's inputs, whose values KFP knows only at run time. So the step
gets the same inputs again, as `of0--NAME`: declared with the training's types and defaults, because KFP's
driver converts only declared inputs, and its launcher fills in only declared defaults. The step's function
does not name them, so they are in its command line alone.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from kfp import dsl, kubernetes
from kfp.dsl.pipeline_channel import PipelineArtifactChannel, PipelineChannel

from podferry.components.step import is_absent
from podferry.components.task_arguments import no_training_problem
from podferry.components.trained_task.locate import (
    ARTIFACT_SLOTS,
    INPUT_PREFIX,
    NAMESPACE_VARIABLE,
    NODE_VARIABLE,
    SETTINGS,
    TrainedTask,
)
from podferry.components.trained_task.place import problems_of_place
from podferry.components.training.gpu_train.settings_of import read_by, settings_of
from podferry.contract.code_version import code_of_words
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.kfp_inputs import COMPILER_INPUTS
from podferry.contract.pod_owner import NODE_NAME

FUNCTION_FLAG = "--function_to_execute"
ONE_INPUT = re.compile(r"\$\(inputs\.([^()]*)\)")
PLATFORM_TYPES = frozenset({"TaskFinalStatus", "TaskConfig"})
"""Types of inputs that KFP itself fills in."""
FIELDS = {NAMESPACE_VARIABLE: "metadata.namespace", NODE_VARIABLE: f"metadata.annotations['{NODE_NAME}']"}
"""What only the pod knows, by the variable that its step reads."""


def tasks_of(of: Any) -> list[Any]:
    """The training tasks in `of=`: none, one, or several.

    Raises:
        InvalidSpec: One of them is no step of a pipeline, or it has no checkpoints.
    """
    tasks = [] if of is None else list(of) if isinstance(of, list | tuple) else [of]
    InvalidSpec.raise_any(
        problem for task in tasks for problem in (*_problems(task), *problems_of_place(task))
    )
    return tasks


def artifacts_of(tasks: Sequence[Any]) -> dict[str, Any]:
    """The training tasks' artifacts by the step's input that takes them; at most `ARTIFACT_SLOTS`."""
    channels = [value for task in tasks for _, value in _artifacts(task)]
    if len(channels) > len(ARTIFACT_SLOTS):
        measured, remedy = f"{len(channels)} artifacts", "Pass what identifies them as parameters"
        raise InvalidSpec.of("the training takes too many artifacts to look for it", measured, remedy)
    return dict(zip(ARTIFACT_SLOTS, channels, strict=False))


def describe(tasks: Sequence[Any], checkpoints: Any = None) -> list[dict[str, Any]]:
    """What the step has to know of each training task, in addition to its inputs."""
    slots = iter(ARTIFACT_SLOTS)
    return [msgspec.to_builtins(_described(task, slots, checkpoints)) for task in tasks]


def carry(step: Any, tasks: Sequence[Any]) -> Any:
    """Give a step the inputs of training tasks, and have it run after them."""
    if not tasks:
        return step
    # The component is shared by all its tasks: only this one gets more inputs.
    step.component_spec = copy.copy(step.component_spec)
    step.component_spec.inputs = dict(step.component_spec.inputs)
    for index, task in enumerate(tasks):
        declared = task.component_spec.inputs or {}
        for name in _carried(task):
            carried = INPUT_PREFIX.format(index) + name
            if name in declared:
                step.component_spec.inputs[carried] = declared[name]
            if task.inputs.get(name) is not None:
                step.inputs[carried] = task.inputs[name]
        step.channel_inputs.extend(_parameters_of(task))
        read_by(task, step)
    for name, path in FIELDS.items():
        kubernetes.use_field_path_as_env(step, name, path)
    return step.after(*tasks)


def secret_of(tasks: Sequence[Any]) -> Any:
    """The Secret for the checkpoints of the first training that has one: a name, a channel, or None."""
    for task in tasks:
        settings = settings_of(task)
        text = settings.get("checkpoints-secret") or settings.get("secret")
        if text is None:
            continue
        match = ONE_INPUT.fullmatch(text)
        return task.inputs.get(match[1]) if match else text if "$(" not in text else None
    return None


def _problems(task: Any) -> Iterator[Problem]:
    if (problem := no_training_problem("of=", task)) is not None:
        yield problem
        return
    lists = [name for name, one in (task.component_spec.inputs or {}).items() if one.is_artifact_list]
    if any(name in task.inputs for name in lists):
        remedy = "Give lineages= instead of of="
        yield Problem(f"{task.name} takes lists of artifacts", ", ".join(lists), remedy)


def _described(task: Any, slots: Iterator[str], checkpoints: Any) -> TrainedTask:
    settings = settings_of(task)
    wanted = {key: text for key, text in settings.items() if key in SETTINGS}
    if "checkpoints" not in wanted and not is_absent(_value_of(task, "checkpoints")):
        wanted["checkpoints"] = "$(inputs.checkpoints)"
    if "checkpoints" not in wanted and checkpoints is None:
        remedy = "Give checkpoints= to gpu_train or here"
        raise InvalidSpec.of(f"{task.name} has no destination for checkpoints", "", remedy)
    return TrainedTask(
        task=task.name,
        function=_function_of(task),
        injected=bool(settings),
        settings=wanted,
        artifacts={name: next(slots) for name, _ in _artifacts(task)},
        code=code_of_words(_image_of(task), _words_of(task)),
    )


def _value_of(task: Any, name: str) -> Any:
    """What the task's component gets for an input: a channel, a constant, its default, or None."""
    declared = (task.component_spec.inputs or {}).get(name)
    return None if declared is None else task.inputs.get(name, declared.default)


def _function_of(task: Any) -> str:
    """The function that a lightweight component executes, else an empty text."""
    words = _words_of(task)
    at = words.index(FUNCTION_FLAG) + 1 if FUNCTION_FLAG in words else len(words)
    return str(words[at]) if at < len(words) else ""


def _words_of(task: Any) -> list[str]:
    """The words of its container, as its pod has them after those of KFP's launcher."""
    return [*(task.container_spec.command or []), *(task.container_spec.args or [])]


def _image_of(task: Any) -> str | None:
    """The image, unless it is known only when the pipeline runs."""
    image = task.container_spec.image
    return image if isinstance(image, str) and "{{" not in image else None


def _artifacts(task: Any) -> list[tuple[str, Any]]:
    return sorted((name, value) for name, value in task.inputs.items() if _is_artifact(value))


def _carried(task: Any) -> list[str]:
    """The parameters that count for the hash of the inputs, given or default."""
    declared: Mapping[str, Any] = task.component_spec.inputs or {}
    names = dict.fromkeys([*declared, *(name for name in task.inputs if name not in COMPILER_INPUTS)])
    artifacts = {name for name, value in task.inputs.items() if _is_artifact(value)}
    return [name for name in names if name not in artifacts and not _is_other(declared.get(name))]


def _is_other(declared: Any) -> bool:
    """Whether an input is an artifact, or filled in by KFP itself."""
    if declared is None:
        return False
    return declared.type in PLATFORM_TYPES or declared.type.startswith(("system.", "google."))


def _parameters_of(task: Any) -> list[PipelineChannel]:
    return [one for one in task.channel_inputs if not _is_artifact(one)]


def _is_artifact(value: Any) -> bool:
    return isinstance(value, PipelineArtifactChannel) or (
        isinstance(value, dsl.Collected) and value.is_artifact_channel
    )
