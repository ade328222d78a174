"""The source of a component around a user's function."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest

from podferry.components.training.train.wrapped_source import wrapped_source
from podferry.contract.errors import InvalidSpec


def decorator(function: Any) -> Any:
    return function


@decorator
def fit(f: object, lr: float, names: list[str], epochs: int = 2, note: str = "it's") -> dict[str, float]:
    """Fit it. "Quoted" \\ and escaped."""
    text = """first
second
    third"""
    assert [line for line in text.splitlines()] == ["first", "second", "    third"]  # noqa: C416
    return {
        "loss": lr / epochs,
        "lines": f"""{text}
x""".count("\n"),
    }


def test_the_users_function_is_inside_with_its_texts_unchanged() -> None:
    source = wrapped_source(fit, {"include": "*.bin", "keep_local": 2})
    (outer,) = ast.parse(source).body
    assert isinstance(outer, ast.FunctionDef)
    assert outer.name == "fit"
    arguments = outer.args
    assert [one.arg for one in arguments.args] == [
        *("report", "metrics", "lr", "names", "dataset", "checkpoints", "epochs", "note")
    ]
    assert [ast.literal_eval(one) for one in arguments.defaults] == ["", "", 2, "it's"]
    inner = next(one for one in outer.body if isinstance(one, ast.FunctionDef))
    variables: dict[str, Any] = {}
    exec(compile(ast.Module([inner], []), "inner", "exec"), variables)  # noqa: S102
    assert variables["fit"](None, 1.0, []) == {"loss": 0.5, "lines": 3}
    assert "| {'include': '*.bin', 'keep_local': 2}" in source


def test_everything_that_cannot_be_a_component_is_named_at_once() -> None:
    def wrong(  # type: ignore[no-untyped-def]
        f, dataset: str, untyped, data: Annotated[str, "artifact"], *rest: int
    ):
        pass

    with pytest.raises(InvalidSpec) as caught:
        wrapped_source(wrong, {"include": object()})
    assert [one.what.partition(": ")[2] for one in caught.value.problems] == [
        "wrong cannot have a parameter dataset",
        "the input untyped of wrong has no type",
        "the input data of wrong is an artifact",
        "wrong has *rest",
        "include is no literal",
    ]
    assert "f.dataset" in caught.value.problems[0].remedy


async def awaited(f: object) -> None:
    """Its call returns a coroutine."""


def yielding(f: object) -> Iterator[int]:
    """Its call returns a generator."""
    yield 1


async def both(f: object) -> AsyncIterator[int]:
    """Its call returns an asynchronous generator."""
    yield 1


@pytest.mark.parametrize("function", [awaited, yielding, both])
def test_a_function_whose_call_runs_nothing_is_refused(function: Any) -> None:
    """The step would succeed without any training."""
    with pytest.raises(InvalidSpec, match=f"a call of {function.__name__} does not run its body"):
        wrapped_source(function, {})


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda f: f, "not a function"),
        (lambda: 1, "not a function"),
        ("team/train:1", "'team/train:1' is not a function"),
    ],
)
def test_a_lambda_has_no_source_of_its_own(function: Any, what: str) -> None:
    with pytest.raises(InvalidSpec, match=what):
        wrapped_source(function, {})


def test_a_function_whose_source_is_not_there() -> None:
    variables: dict[str, Any] = {}
    exec("def typed(f): pass", variables)  # noqa: S102
    with pytest.raises(InvalidSpec, match=r"the source of typed cannot be read .*Write it in a file"):
        wrapped_source(variables["typed"], {})


def test_a_function_without_a_place_for_the_ferry() -> None:
    def empty() -> None:
        pass

    with pytest.raises(InvalidSpec, match=r"Take the Ferry first: def empty\(f"):
        wrapped_source(empty, {})


def test_what_is_no_setting_of_ferry_is_refused() -> None:
    """An injected agent makes `ferry` ignore its settings: a misspelled one would pass on a cluster."""
    wrapped_source(
        fit, {"secret_dir": "/s", "checkpoints_secret_dir": "/c", "durable_timeout": 9.0, "lineage": "a"}
    )
    with pytest.raises(InvalidSpec) as caught:
        wrapped_source(fit, {"lineag": "a", "packages_to_install": ["torch"], "checkpoints": "s3://c/d"})
    misspelled, package, place = caught.value.problems
    assert misspelled.what == "train_component: lineag is no setting of ferry"
    assert misspelled.remedy == "Did you mean 'lineage'?"
    assert "packages belong in base_image" in package.remedy
    assert "give it to the step" in place.remedy
