"""Writes the function of a component around a user's function.

KFP copies the source of one function into a step, so the user's function is inside it, under its own name.
Its parameters after the first are the component's inputs.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from podferry.contract.annotation_keys import known_keys
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.suggest import did_you_mean

SECRET_OWNERS = ("dataset_", "checkpoints_", "outputs_")
RESERVED = ("dataset", "checkpoints", "report", "metrics")
"""Inputs and outputs of every such component."""
KEYWORDS = ("durable_timeout", "polling", "run", *(f"{one}secret_dir" for one in ("", *SECRET_OWNERS)))
"""Keywords of `ferry` that are no annotations."""
IMAGE_HINT = "docs/python.md has the keywords; packages belong in base_image"
INDENT = "    "
WRAPPER = '''def {name}(
    report: dsl.Output[dsl.HTML],
    metrics: dsl.Output[dsl.Metrics],
{parameters}
):
    """{summary}"""
    from podferry.components.training.train.runner import run_training
    from podferry.trainer import Ferry

{function}

    run_training(
        {name},
        {{"dataset": dataset, "checkpoints": checkpoints}} | {settings},
        {arguments},
        report.path,
        metrics,
    )
'''


def wrapped_source(function: Callable[..., Any], settings: Mapping[str, Any]) -> str:
    """The source of the component's function; `settings` are keywords of `ferry`, as literals.

    Raises:
        InvalidSpec: It is no plain function with a parameter for the `Ferry`, or uses a reserved name.
    """
    parameters = list(inspect.signature(function).parameters.values()) if callable(function) else []
    InvalidSpec.raise_any(_problems(function, parameters, settings))
    inputs = parameters[1:]
    required = [_declared(one) for one in inputs if one.default is inspect.Parameter.empty]
    optional = [_declared(one) for one in inputs if one.default is not inspect.Parameter.empty]
    places = ["dataset: str = ''", "checkpoints: str = ''"]
    summary = (inspect.getdoc(function) or f"Train with {function.__name__}.").splitlines()[0]
    return WRAPPER.format(
        name=function.__name__,
        parameters="\n".join(f"{INDENT}{one}," for one in (*required, *places, *optional)),
        summary=summary.replace("\\", "\\\\").replace('"', "'"),
        function=_indented(_definition(function)),
        settings=repr(dict(settings)),
        arguments="{" + ", ".join(f"{one.name!r}: {one.name}" for one in inputs) + "}",
    )


def _problems(
    function: Callable[..., Any], parameters: list[inspect.Parameter], settings: Mapping[str, Any]
) -> Iterator[Problem]:
    name = getattr(function, "__name__", repr(function))
    yield from _function_problems(name, function, parameters)
    for one in parameters[1:]:
        if one.name in RESERVED:
            remedy = f"Rename it: the Ferry has it, as {parameters[0].name}.{one.name}"
            yield Problem(f"train_component: {name} cannot have a parameter {one.name}", remedy=remedy)
        elif one.kind in {one.VAR_POSITIONAL, one.VAR_KEYWORD}:
            yield Problem(f"train_component: {name} has *{one.name}", remedy="Name each input and its type")
        elif "Annotated" in _annotation(one):
            remedy = "Write a component with dsl.component, and call ferry in it"
            yield Problem(f"train_component: the input {one.name} of {name} is an artifact", remedy=remedy)
        elif one.annotation is one.empty:
            yield Problem(
                f"train_component: the input {one.name} of {name} has no type", remedy="Write its type"
            )
    for key, value in settings.items():
        yield from _setting_problems(key, value)


def _setting_problems(key: str, value: Any) -> Iterator[Problem]:
    """With an injected agent the step does not read its settings, so a misspelled one would pass there."""
    known = {*KEYWORDS, *(one.replace("-", "_") for one in known_keys([key.replace("_", "-")]))}
    known -= {*RESERVED, "inject"}
    if key not in known:
        inputs = key in RESERVED
        remedy = "It is an input: give it to the step" if inputs else did_you_mean(key, known, IMAGE_HINT)
        yield Problem(f"train_component: {key} is no setting of ferry", repr(value), remedy)
    elif repr(value) != repr(_literal(value)):
        remedy = "Give ferry's settings as literals: the step has only their text"
        yield Problem(f"train_component: {key} is no literal", repr(value), remedy)


def _function_problems(
    name: str, function: Callable[..., Any], parameters: list[inspect.Parameter]
) -> Iterator[Problem]:
    if not inspect.isfunction(function) or name == "<lambda>":
        yield Problem(f"train_component: {name} is not a function", remedy="Write it with def")
    elif not parameters:
        yield Problem(
            f"train_component: {name} has no parameter", remedy=f"Take the Ferry first: def {name}(f, …)"
        )
    elif _is_deferred(function):
        what = f"train_component: a call of {name} does not run its body, as it is async or yields"
        yield Problem(what, remedy="Write a plain function, which may use asyncio.run and generators")


def _is_deferred(function: Callable[..., Any]) -> bool:
    """Whether a call only makes a coroutine or a generator: the step would succeed without training."""
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return any(kind(function) for kind in kinds)


def _literal(value: Any) -> Any:
    try:
        return ast.literal_eval(repr(value))
    except (ValueError, SyntaxError):
        return None


def _declared(parameter: inspect.Parameter) -> str:
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{parameter.name}: {_annotation(parameter)}{default}"


def _annotation(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _definition(function: Callable[..., Any]) -> str:
    """The source from `def`, without decorators."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except OSError as error:
        remedy = "Write it in a file or a notebook: KFP copies its source into the step"
        raise InvalidSpec.of(
            f"the source of {function.__name__} cannot be read", str(error), remedy
        ) from error
    (node,) = ast.parse(source).body
    return "\n".join(source.splitlines()[node.lineno - 1 :])


def _indented(source: str) -> str:
    """The source one level deeper; lines inside a text that spans several stay as they are."""
    inside = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno is not None
        for line in range(node.lineno + 1, node.end_lineno + 1)
    }
    lines = enumerate(source.splitlines(), 1)
    return "\n".join(line if number in inside or not line else INDENT + line for number, line in lines)
