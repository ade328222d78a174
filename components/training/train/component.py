"""`train_component` makes a component of a training function."""

from __future__ import annotations

import linecache
import os
import typing
from collections.abc import Callable
from typing import Any

from kfp import dsl

from podferry.components.step import step_image


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
    # Imported on call: it takes longer than all the names of `podferry.components` together.
    from podferry.components.training.train.wrapped_source import wrapped_source  # noqa: PLC0415

    source = wrapped_source(function, settings)
    image = base_image or step_image(os.environ)
    return dsl.component(_compiled(function.__name__, source), base_image=image, install_kfp_package=False)


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
