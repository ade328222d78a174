"""`gpu_train`: sets the annotations of a training task's pod, and reserves its GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kfp import kubernetes
from kfp.dsl.pipeline_channel import PipelineChannel

from podferry.components.training.gpu_train.input_refs import TaskInputs, annotation_text, inputs_of
from podferry.components.training.gpu_train.validate import annotation_problems, locations_of
from podferry.contract.annotation_keys import known_keys
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.quantity import parse_bytes
from podferry.contract.spec import PREFIX
from podferry.contract.suggest import did_you_mean
from podferry.contract.variable_substitution import INPUT_PREFIX, TOKEN

KFP_MEMORY = re.compile(r"\d+([EPTGMK]i?)?")
"""The quantities that KFP's `set_memory_limit` accepts."""
RESOURCE_NAME = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
"""The name of a Kubernetes resource: an optional DNS prefix, and a name."""


def gpu_train(  # noqa: PLR0913 - keywords, one per setting
    task: Any,
    *,
    dataset: Any = None,
    checkpoints: Any = None,
    accelerator: Any = "nvidia.com/gpu",
    gpus: Any = 1,
    memory: Any = None,
    shm_size: Any = None,
    secret: Any = None,
    **settings: Any,
) -> Any:
    """Stage a training task's dataset, upload its checkpoints, and reserve its GPUs.

    A value may be an output of another task if an input of this task carries it: the annotation then refers
    to that input, whose value is in the pod's command. You may also write `$(inputs.NAME)` yourself.

    KFP's cache compares a task's inputs, but neither its annotations nor the content of artifacts. So the
    task is excluded from the cache, unless a parameter carries the frozen dataset: the `reference` of
    `dataset` or `cache`, or a constant with `#sha256=`.

    Args:
        task: A step inside a pipeline; its image does not need podferry.
        dataset: URI, reference, declared name, or a channel of one (also the artifact `data`). For several
            datasets, a mapping by name.
        checkpoints: URI of the destination.
        accelerator: Kubernetes resource of the accelerator.
        gpus: Number of accelerators; 0 for none.
        memory: Memory limit of the training container.
        shm_size: Size of its `/dev/shm`.
        secret: Name of a Secret with the credentials.
        **settings: Further annotations with `_` for `-`: `dataset_size`, `include`, `shard`, `medium`,
            `checkpoint_size`, `outputs`, …. A setting of one of several datasets is a mapping by name; globs
            may be a list.

    Returns:
        The task.

    Raises:
        InvalidSpec: All errors, before anything is set.
    """
    if getattr(task, "container_spec", None) is None:
        remedy = "Call gpu_train inside that pipeline, on the step that trains"
        name = getattr(task, "name", repr(task))
        raise InvalidSpec.of("gpu_train needs a step, not a pipeline or an importer", name, remedy)
    inputs = inputs_of(task)
    named = {"dataset": dataset, "checkpoints": checkpoints, "shm_size": shm_size, "secret": secret}
    annotations, problems = to_annotations(flatten(named | settings), inputs)
    problems += _resource_problems(accelerator, gpus, memory)
    InvalidSpec.raise_any(problems)
    for key, text in annotations.items():
        kubernetes.add_pod_annotation(task, key, text)
    _reserve_resources(task, accelerator, gpus, memory)
    if not all(_tracks_content(text, inputs) for text in locations_of(annotations)):
        task.set_caching_options(False)
    return task


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten mappings by dataset name: `include` of the dataset `test` becomes `include.test`."""
    return {
        f"{setting}.{name}".rstrip("."): "\n".join(one) if isinstance(one, list | tuple) else one
        for setting, value in values.items()
        for name, one in (value if isinstance(value, Mapping) else {"": value}).items()
    }


def to_annotations(values: Mapping[str, Any], inputs: TaskInputs) -> tuple[dict[str, str], list[Problem]]:
    """Convert keyword arguments to annotations, and collect all errors."""
    annotations: dict[str, str] = {}
    problems: list[Problem] = []
    keys = known_keys(name.replace("_", "-") for name in values)
    for name, value in values.items():
        if value is None:
            continue
        key = name.replace("_", "-")
        if key not in keys:
            known = [one.replace("-", "_") for one in keys]
            remedy = did_you_mean(name, known, f"Known: {', '.join(known)}")
            problems.append(Problem(f"{name}: gpu_train has no such setting", repr(value), remedy))
            continue
        text, problem = annotation_text(value, inputs)
        if problem is None:
            annotations[PREFIX + key] = text
        else:
            problems.append(Problem(f"{name}: {problem.what}", problem.measured, problem.remedy))
    return annotations, [*problems, *_validate(annotations, values, inputs)]


def _validate(annotations: Mapping[str, str], values: Mapping[str, Any], inputs: TaskInputs) -> list[Problem]:
    """Validate the annotations, with placeholders for values that were refused already."""
    refused = {name.replace("_", "-") for name, value in values.items() if value is not None}
    refused -= {key.removeprefix(PREFIX) for key in annotations}
    placeholders = {
        PREFIX + name: f"$({INPUT_PREFIX}refused)" for name in refused if name in known_keys(refused)
    }
    known = replace(inputs, dynamic=(*inputs.dynamic, "refused"))
    if not annotations and not refused:
        what = "gpu_train has neither a dataset nor a destination"
        remedy = "Give dataset=, checkpoints= or outputs=, or set the GPUs on the task itself"
        return [Problem(what, "", remedy)]
    return annotation_problems({**annotations, **placeholders}, known)


def _resource_problems(accelerator: Any, gpus: Any, memory: Any) -> list[Problem]:
    """Validate the resources, except for channels, which KFP resolves."""
    problems = []
    if not isinstance(accelerator, PipelineChannel) and not RESOURCE_NAME.fullmatch(str(accelerator)):
        remedy = "Write its name in the node's allocatable resources, such as nvidia.com/gpu"
        problems.append(Problem("accelerator: not the name of a resource", repr(accelerator), remedy))
    if not isinstance(gpus, PipelineChannel) and not re.fullmatch(r"\d{1,4}", str(gpus)):
        problems.append(Problem("gpus: not an integer of 0 or more", repr(gpus), "Write 0 or more"))
    if memory is not None and not isinstance(memory, PipelineChannel):
        try:
            parse_bytes(str(memory))
        except InvalidSpec as error:
            problems += (Problem(f"memory: {one.what}", one.measured, one.remedy) for one in error.problems)
    return problems


def _reserve_resources(task: Any, accelerator: Any, gpus: Any, memory: Any) -> None:
    if isinstance(gpus, PipelineChannel) or int(gpus):
        task.set_accelerator_type(accelerator).set_accelerator_limit(gpus)
    if isinstance(memory, PipelineChannel):
        task.set_memory_limit(memory)
    elif memory is not None:
        text = str(memory)
        # KFP accepts fewer formats than Kubernetes: the others are converted to plain bytes.
        task.set_memory_limit(text if KFP_MEMORY.fullmatch(text) else str(parse_bytes(text)))


def _tracks_content(text: str, inputs: TaskInputs) -> bool:
    """Whether a parameter of the task changes when the data does, so that KFP's cache notices."""
    used = [match["name"] or "" for match in TOKEN.finditer(text)]
    names = [name.removeprefix(INPUT_PREFIX) for name in used if name.startswith(INPUT_PREFIX)]
    return any(
        "#sha256=" in inputs.constants.get(name, "") or inputs.carries_reference(name) for name in names
    )
