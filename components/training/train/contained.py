"""A training in a container: a component of an image, and its task."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from kfp import dsl
from kfp.dsl.pipeline_channel import PipelineChannel

from podferry.components.constants import constant_problems
from podferry.components.training.gpu_train.task import gpu_train
from podferry.contract.errors import InvalidSpec

TYPES: Mapping[str, type] = {
    "Integer": int,
    "Float": float,
    "Boolean": bool,
    "List": list,
    "Dict": dict,
}
"""Python types of KFP's channels; any other is a text."""


def trained_in_container(
    name: str,
    image: str,
    command: Sequence[str],
    locations: Mapping[str, Any],
    parameters: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Any:
    """See `train`; `locations` are the dataset and the checkpoints."""
    InvalidSpec.raise_any(constant_problems({"image": image, "command": command, "parameters": parameters}))
    component = container(name, image, command, parameters)
    texts = {one: "" if place is None else place for one, place in locations.items()}
    task = component(**texts, **{input_name(one): value for one, value in parameters.items()})
    return gpu_train(task, **locations, **settings)


def container(name: str, image: str, command: Sequence[str], parameters: Mapping[str, Any]) -> Any:
    """A container component whose inputs are `parameters`, after `dataset` and `checkpoints`.

    Args:
        name: Of the component.
        image: Of the container.
        command: What it runs; `--NAME VALUE` follows for each parameter.
        parameters: Values by name; only their types count here.
    """
    inputs = {"dataset": str, "checkpoints": str} | {
        input_name(one): _type(value) for one, value in parameters.items()
    }

    def contained(*given: Any) -> dsl.ContainerSpec:
        placeholders = dict(zip(inputs, given, strict=True))
        options = [part for one in parameters for part in (f"--{one}", placeholders[input_name(one)])]
        return dsl.ContainerSpec(image=image, command=list(command), args=options)

    contained.__name__ = contained.__qualname__ = name
    contained.__doc__ = f"Run {image}."
    contained.__annotations__ = {**inputs, "return": dsl.ContainerSpec}
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    declared = [inspect.Parameter(one, keyword, annotation=kind) for one, kind in inputs.items()]
    contained.__signature__ = inspect.Signature(declared, return_annotation=dsl.ContainerSpec)  # type: ignore[attr-defined]
    return dsl.container_component(contained)


def input_name(option: str) -> str:
    """The input of a parameter: KFP's names have no hyphens."""
    return option.replace("-", "_")


def _type(value: Any) -> type:
    if isinstance(value, PipelineChannel):
        return TYPES.get(str(value.channel_type), str)
    return next((kind for kind in (bool, int, float, list, dict) if isinstance(value, kind)), str)
