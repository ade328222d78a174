"""Applies the settings of `gpu_train` to a task."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kfp import kubernetes
from kfp.dsl.pipeline_channel import PipelineChannel

from podferry.components.step import exclude_from_cache, is_absent
from podferry.components.task_arguments import CHANNEL, displayed, no_output_problem, no_training_problem
from podferry.components.training.gpu_train.input_refs import TaskInputs, inputs_of
from podferry.components.training.gpu_train.settings import read_settings
from podferry.components.training.gpu_train.settings_of import configure_once, refuse_if_read
from podferry.components.training.gpu_train.undeclared_inputs import (
    add_undeclared_input,
    register_channels,
    undeclared_name,
)
from podferry.components.training.gpu_train.validate import locations_of
from podferry.contract.annotation_values import parse_size
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.quantity import format_bytes, parse_bytes
from podferry.contract.variable_substitution import INPUT_PREFIX, TOKEN

KFP_MEMORY = re.compile(r"\d+([EPTGMK]i?)?")
"""The quantities that KFP's `set_memory_limit` accepts."""
RESOURCE_NAME = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
"""The name of a Kubernetes resource: an optional DNS prefix, and a name."""

MIN_MEMORY = 2**20
"""Bytes: no process that trains has less, so a smaller number lacks its suffix."""
TOO_LITTLE = "too little for a process"

PLANNED_MEMORY, TRAIN_MEMORY = "process_memory", "train_memory"
"""The output of `cache` that is the memory of a training, and the input without which it is empty."""
DIGEST_FIELD = "#sha256="
"""What shows that a constant names a frozen dataset."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What the training container reserves: constants or channels; `memory` None for no limit."""

    accelerator: Any
    gpus: Any
    memory: Any


def train_on_gpus(
    task: Any, locations: Mapping[str, Any], settings: Mapping[str, Any], resources: Resources
) -> Any:
    """See `gpu_train`; locations that are None are taken from the task's inputs."""
    if (problem := no_training_problem("gpu_train", task)) is not None:
        raise InvalidSpec(problem)
    refuse_if_read(task)
    inputs = inputs_of(task)
    given = {name: inputs.taken.get(name) if value is None else value for name, value in locations.items()}
    read = read_settings({**given, **settings}, inputs)
    InvalidSpec.raise_any([*read.problems, *_resource_problems(resources, settings.get("shm_size"))])
    configure_once(task)
    _warn_of_artifacts(task, inputs.artifacts)
    for name, value in read.added.items():
        add_undeclared_input(task, name, value)
    for key, text in read.annotations.items():
        kubernetes.add_pod_annotation(task, key, text)
    _reserve(task, resources)
    inputs = inputs_of(task)
    if not all(_tracks_content(text, inputs) for text in locations_of(read.annotations)):
        exclude_from_cache(task, undeclared_name("run"))
    return task


def _warn_of_artifacts(task: Any, artifacts: Sequence[str]) -> None:
    """KFP's cache compares an artifact's id, and every run of the step before makes another one."""
    if artifacts:
        inputs, verb = ("input", "is an artifact") if len(artifacts) == 1 else ("inputs", "are artifacts")
        text = (
            f"{task.name}: the {inputs} {', '.join(artifacts)} {verb} of another step, so KFP's cache never "
            "answers this training. Pass parameters instead, such as the output 'reference' of dataset"
        )
        warnings.warn(text, stacklevel=4)  # the line that calls gpu_train


def _resource_problems(resources: Resources, shm_size: Any) -> Iterator[Problem]:
    """Validate the resources, except for channels, which KFP resolves."""
    accelerator, gpus, memory = resources.accelerator, resources.gpus, resources.memory
    given = {"accelerator": accelerator, "gpus": gpus, "memory": memory, "shm_size": shm_size}
    wrong = {name: one for name, value in given.items() if (one := no_output_problem(value)) is not None}
    for name, one in wrong.items():
        if name != "shm_size":  # which is an annotation, and refused as such
            yield Problem(f"{name}: {one.what}", one.measured, one.remedy)
    known = given.keys() - wrong.keys() - {n for n, one in given.items() if isinstance(one, PipelineChannel)}
    if "accelerator" in known and not _is_resource_name(accelerator):
        remedy = "Write its name in the node's allocatable resources, such as nvidia.com/gpu"
        yield Problem("accelerator: not the name of a resource", repr(accelerator), remedy)
    if "gpus" in known and not re.fullmatch(r"\d{1,4}", str(gpus)):
        yield Problem("gpus: not an integer of 0 or more", repr(gpus), "Write 0 or more")
    if "memory" in known and memory is not None:
        yield from _size_problems("memory", memory)
    if "memory" not in known:
        yield from _plan_problems(memory)
    if "shm_size" in known and shm_size:  # its other problems are those of the annotation
        yield from (one for one in _size_problems("shm_size", shm_size) if TOO_LITTLE in one.what)


def _plan_problems(memory: Any) -> Iterator[Problem]:
    """The output of a `cache` that got no `train_memory`: it is empty, which is no quantity."""
    planned: Any = getattr(memory, "task", None)
    spec: Any = getattr(planned, "component_spec", None)
    if spec is None or memory.name != PLANNED_MEMORY or TRAIN_MEMORY not in (spec.inputs or {}):
        return
    if is_absent(planned.inputs.get(TRAIN_MEMORY)):
        remedy = f"Give {TRAIN_MEMORY}= to {planned.name}: the training's own memory"
        yield Problem(f"memory: {displayed(memory)} will be empty", f"no {TRAIN_MEMORY}", remedy)


def _is_resource_name(value: Any) -> bool:
    return isinstance(value, str) and RESOURCE_NAME.fullmatch(value) is not None


def _size_problems(name: str, value: Any) -> Iterator[Problem]:
    if isinstance(value, str) and CHANNEL.search(value):
        remedy = "Pass an output or a parameter alone, such as the memory with its suffix"
        yield Problem(f"{name}: KFP takes no text with an output in it", displayed(value), remedy)
        return
    try:
        count = parse_size(str(value))
    except InvalidSpec as error:
        yield from (Problem(f"{name}: {one.what}", one.measured, one.remedy) for one in error.problems)
        return
    if count < MIN_MEMORY:
        remedy = "Write a size with a suffix such as Mi or Gi: without one, it is in bytes"
        yield Problem(f"{name}: {format_bytes(count)} is {TOO_LITTLE}", repr(value), remedy)


def _reserve(task: Any, resources: Resources) -> None:
    gpus, memory = resources.gpus, resources.memory
    register_channels(task, [resources.accelerator, gpus, memory])
    if isinstance(gpus, PipelineChannel) or int(gpus):
        task.set_accelerator_type(resources.accelerator).set_accelerator_limit(gpus)
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
    texts = [text, *(inputs.constants.get(name, "") for name in names)]
    return any(DIGEST_FIELD in one for one in texts) or any(map(inputs.carries_reference, names))
