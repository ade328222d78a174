"""A training in a container: a component of an image, and its task."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from keyword import iskeyword
from typing import Any

from kfp import dsl
from kfp.dsl.pipeline_channel import PipelineChannel

from podferry.components.constants import constant_problems
from podferry.components.training.gpu_train.task import gpu_train
from podferry.contract.errors import InvalidSpec, Problem

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
    constants = {"image": image, "command": command, "parameters": parameters}
    problems = [*_name_problems(name), *constant_problems(constants), *_option_problems(parameters)]
    InvalidSpec.raise_any(problems)
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


def _option_problems(parameters: Any) -> Iterator[Problem]:
    """Options that KFP has no input for, and two that would be the same input."""
    taken = {"dataset": "dataset=", "checkpoints": "checkpoints="}
    for option in parameters if isinstance(parameters, Mapping) else ():
        if not _is_option(option):
            remedy = "Write letters, digits, '-' and '_' without the leading --, and no word of Python's own"
            yield Problem("parameters: not the name of an option", repr(option), remedy)
        elif (other := taken.setdefault(input_name(option), repr(option))) != repr(option):
            remedy = "Rename it; the program finds the locations in PODFERRY_DATASET and PODFERRY_CHECKPOINTS"
            yield Problem(f"parameters: {option!r} is the same input as {other}", "", remedy)


def _is_option(option: Any) -> bool:
    """Whether its input can be a parameter of a Python function, as KFP needs, next to `self`."""
    if not isinstance(option, str) or option.startswith("-"):
        return False
    name = input_name(option)
    return name.isidentifier() and not iskeyword(name) and name != "self"


def _name_problems(name: Any) -> Iterator[Problem]:
    if not isinstance(name, str) or not name.strip():
        yield Problem("name: not the name of a step", repr(name), "Write a text such as train")


def _type(value: Any) -> type:
    if isinstance(value, PipelineChannel):
        return TYPES.get(str(value.channel_type), str)
    return next((kind for kind in (bool, int, float, list, dict) if isinstance(value, kind)), str)
