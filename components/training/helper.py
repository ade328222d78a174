"""`gpu_train`: a task's wishes as annotations of its pod, and its GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kfp import kubernetes
from kfp.dsl.pipeline_channel import PipelineChannel

from podferry.components.training.input_refs import TaskInputs, annotation_text, inputs_of
from podferry.components.training.validate import annotation_problems, locations_of
from podferry.contract.annotation_keys import known_keys
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.quantity import parse_bytes
from podferry.contract.spec import PREFIX
from podferry.contract.substitution import INPUT_PREFIX, TOKEN
from podferry.contract.suggest import did_you_mean

KFP_MEMORY = re.compile(r"\d+([EPTGMK]i?)?")
"""The quantities that KFP's `set_memory_limit` takes."""
RESOURCE = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
"""A Kubernetes resource's name: an optional DNS prefix and a name."""


def gpu_train(  # noqa: PLR0913 - keywords, each a wish of its own
    task: Any,
    *,
    dataset: Any = None,
    checkpoints: Any = None,
    accelerator: Any = "nvidia.com/gpu",
    gpus: Any = 1,
    memory: Any = None,
    shm_size: Any = None,
    secret: Any = None,
    **wishes: Any,
) -> Any:
    """Have a training task's dataset staged, its checkpoints kept, and its GPUs reserved.

    An output of another task may be a value where an input of this task carries it: the annotation then
    names that input, and the pod's own command tells its value. `$(inputs.NAME)` may also be written out.

    KFP's cache compares a task's inputs, neither its annotations nor its artifacts' content. So the task is
    never answered from the cache, unless a parameter carries the frozen dataset: the `reference` of
    `freeze_dataset` or `plan_cache`, or a constant with its `#sha256=`.

    Args:
        task: A step inside a pipeline, whose image need not know of podferry.
        dataset: URI, reference, declared name, or a channel that carries one (also the artifact `data`). A
            mapping brings several, by names of theirs.
        checkpoints: URI of the destination.
        accelerator: Kubernetes resource of the accelerator.
        gpus: How many; 0 for none.
        memory: Memory limit of the training container.
        shm_size: Size of its `/dev/shm`.
        secret: Name of a Secret with the credentials.
        **wishes: Further annotations with `_` for `-`: `dataset_size`, `include`, `shard`, `medium`,
            `checkpoint_size`, `outputs`, …. What belongs to one of several datasets is a mapping by their
            names; globs may be a list.

    Returns:
        The task.

    Raises:
        InvalidSpec: Everything that is wrong, before anything is set.
    """
    if getattr(task, "container_spec", None) is None:
        remedy = "Call gpu_train inside that pipeline, on the step that trains"
        name = getattr(task, "name", repr(task))
        raise InvalidSpec.of("gpu_train needs a step, not a pipeline or an importer", name, remedy)
    inputs = inputs_of(task)
    given = {"dataset": dataset, "checkpoints": checkpoints, "shm_size": shm_size, "secret": secret, **wishes}
    annotations, problems = as_annotations(by_name(given), inputs)
    problems += _resource_problems(accelerator, gpus, memory)
    InvalidSpec.raise_any(problems)
    for key, text in annotations.items():
        kubernetes.add_pod_annotation(task, key, text)
    _reserve(task, accelerator, gpus, memory)
    if not all(_frozen(text, inputs) for text in locations_of(annotations)):
        task.set_caching_options(False)
    return task


def by_name(given: Mapping[str, Any]) -> dict[str, Any]:
    """Wishes of which each is of one dataset at most: `include` of the dataset `test` is `include.test`."""
    return {
        f"{wish}.{name}".rstrip("."): "\n".join(one) if isinstance(one, list | tuple) else one
        for wish, value in given.items()
        for name, one in (value if isinstance(value, Mapping) else {"": value}).items()
    }


def as_annotations(given: Mapping[str, Any], inputs: TaskInputs) -> tuple[dict[str, str], list[Problem]]:
    """Keyword arguments as annotations, and all that is wrong with them."""
    annotations: dict[str, str] = {}
    problems: list[Problem] = []
    keys = known_keys(name.replace("_", "-") for name in given)
    for name, value in given.items():
        if value is None:
            continue
        key = name.replace("_", "-")
        if key not in keys:
            known = [one.replace("-", "_") for one in keys]
            remedy = did_you_mean(name, known, f"Known: {', '.join(known)}")
            problems.append(Problem(f"{name}: gpu_train knows no such wish", repr(value), remedy))
            continue
        text, problem = annotation_text(value, inputs)
        if problem is None:
            annotations[PREFIX + key] = text
        else:
            problems.append(Problem(f"{name}: {problem.what}", problem.measured, problem.remedy))
    return annotations, [*problems, *_checked(annotations, given, inputs)]


def _checked(annotations: Mapping[str, str], given: Mapping[str, Any], inputs: TaskInputs) -> list[Problem]:
    """What the annotations' own rules say, less what follows from a value that has been refused already."""
    refused = {name.replace("_", "-") for name, value in given.items() if value is not None}
    refused -= {key.removeprefix(PREFIX) for key in annotations}
    stand_ins = {
        PREFIX + name: f"$({INPUT_PREFIX}refused)" for name in refused if name in known_keys(refused)
    }
    known = replace(inputs, dynamic=(*inputs.dynamic, "refused"))
    if not annotations and not refused:
        what = "gpu_train is asked for neither a dataset nor a destination"
        remedy = "Give dataset=, checkpoints= or outputs=, or set the GPUs on the task itself"
        return [Problem(what, "", remedy)]
    return annotation_problems({**annotations, **stand_ins}, known)


def _resource_problems(accelerator: Any, gpus: Any, memory: Any) -> list[Problem]:
    """What is wrong with the resources; channels are KFP's to resolve."""
    problems = []
    if not isinstance(accelerator, PipelineChannel) and not RESOURCE.fullmatch(str(accelerator)):
        remedy = "Write its name in the node's allocatable resources, such as nvidia.com/gpu"
        problems.append(Problem("accelerator: no resource's name", repr(accelerator), remedy))
    if not isinstance(gpus, PipelineChannel) and not re.fullmatch(r"\d{1,4}", str(gpus)):
        problems.append(Problem("gpus: no whole number of 0 or more", repr(gpus), "Write 0 or more"))
    if memory is not None and not isinstance(memory, PipelineChannel):
        try:
            parse_bytes(str(memory))
        except InvalidSpec as error:
            problems += (Problem(f"memory: {one.what}", one.measured, one.remedy) for one in error.problems)
    return problems


def _reserve(task: Any, accelerator: Any, gpus: Any, memory: Any) -> None:
    if isinstance(gpus, PipelineChannel) or int(gpus):
        task.set_accelerator_type(accelerator).set_accelerator_limit(gpus)
    if isinstance(memory, PipelineChannel):
        task.set_memory_limit(memory)
    elif memory is not None:
        text = str(memory)
        # KFP knows fewer spellings than Kubernetes: what it does not know becomes plain bytes.
        task.set_memory_limit(text if KFP_MEMORY.fullmatch(text) else str(parse_bytes(text)))


def _frozen(text: str, inputs: TaskInputs) -> bool:
    """Whether a parameter of the task changes when the data does, so that KFP's cache tells them apart."""
    used = [match["name"] or "" for match in TOKEN.finditer(text)]
    names = [name.removeprefix(INPUT_PREFIX) for name in used if name.startswith(INPUT_PREFIX)]
    return any(
        "#sha256=" in inputs.constants.get(name, "") or inputs.carries_reference(name) for name in names
    )
