"""Applies the settings of `gpu_train` to a task."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kfp import kubernetes
from kfp.dsl.pipeline_channel import PipelineChannel

from podferry.components.step import exclude_from_cache
from podferry.components.training.gpu_train.input_refs import TaskInputs, inputs_of, is_uncalled
from podferry.components.training.gpu_train.settings import read_settings
from podferry.components.training.gpu_train.settings_of import configure_once, refuse_if_read
from podferry.components.training.gpu_train.undeclared_inputs import add_undeclared_input, undeclared_name
from podferry.components.training.gpu_train.validate import locations_of
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.quantity import parse_bytes
from podferry.contract.variable_substitution import INPUT_PREFIX, TOKEN

KFP_MEMORY = re.compile(r"\d+([EPTGMK]i?)?")
"""The quantities that KFP's `set_memory_limit` accepts."""
RESOURCE_NAME = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
"""The name of a Kubernetes resource: an optional DNS prefix, and a name."""

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
    if is_uncalled(task):
        remedy = "Call it, and give gpu_train the task that it returns"
        raise InvalidSpec.of("gpu_train needs a task, not a component", task.name, remedy)
    if getattr(task, "container_spec", None) is None:
        remedy = "Call gpu_train inside that pipeline, on the step that trains"
        name = getattr(task, "name", repr(task))
        raise InvalidSpec.of("gpu_train needs a step, not a pipeline or an importer", name, remedy)
    refuse_if_read(task)
    inputs = inputs_of(task)
    given = {name: inputs.taken.get(name) if value is None else value for name, value in locations.items()}
    read = read_settings({**given, **settings}, inputs)
    InvalidSpec.raise_any([*read.problems, *_resource_problems(resources)])
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


def _resource_problems(resources: Resources) -> list[Problem]:
    """Validate the resources, except for channels, which KFP resolves."""
    accelerator, gpus, memory = resources.accelerator, resources.gpus, resources.memory
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


def _reserve(task: Any, resources: Resources) -> None:
    gpus, memory = resources.gpus, resources.memory
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
