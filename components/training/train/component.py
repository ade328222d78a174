"""`train_component` makes a component of a training function; `container` makes one of an image."""

from __future__ import annotations

import inspect
import linecache
import os
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kfp import dsl
from kfp.dsl.pipeline_channel import PipelineChannel

from podferry.components.step import step_image
from podferry.components.training.train.wrapped_source import wrapped_source

TYPES: Mapping[str, type] = {
    "Integer": int,
    "Float": float,
    "Boolean": bool,
    "List": list,
    "Dict": dict,
}
"""Python types of KFP's channels; any other is a text."""


def train_component(
    function: Callable[..., Any] | None = None, *, base_image: str | None = None, **settings: Any
) -> Any:
    """Make a component of a function that trains, by a decorator or a call.

    The function gets a `Ferry` first: its dataset is staged, and when the function returns, its checkpoints
    are durable or the step fails. Its other parameters, each with a type, are inputs of the component. The
    numbers that it returns, by name, are the run's metrics.

    The component also has the inputs `dataset` and `checkpoints`, which `gpu_train` takes, and the artifacts
    `report`, a page about what was staged and committed, and `metrics`.

    Args:
        function: Plain Python, with its imports inside: KFP copies its source.
        base_image: An image with podferry, kfp and jinja2; by default that of podferry's steps.
        **settings: Further keywords of `ferry`, as literals: `include`, `lineage`, `secret_dir`, ….

    Raises:
        InvalidSpec: The function or a setting cannot be used, with all the reasons.
    """
    if function is None:
        return lambda one: train_component(one, base_image=base_image, **settings)
    source = wrapped_source(function, settings)
    image = base_image or step_image(os.environ)
    return dsl.component(_compiled(function.__name__, source), base_image=image, install_kfp_package=False)


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


def _compiled(name: str, source: str) -> Callable[..., Any]:
    """The function, whose source `inspect` finds as it finds that of a file."""
    file = f"<train_component {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    variables: dict[str, Any] = {"dsl": dsl, **{one: getattr(typing, one) for one in typing.__all__}}
    # KFP reads annotations as values, so this module's own `annotations` must not be inherited.
    code = compile(source, file, "exec", dont_inherit=True)
    exec(code, variables)  # noqa: S102 - the user's own function, in a frame of ours
    found: Callable[..., Any] = variables[name]
    return found
