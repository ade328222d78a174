"""Pipelines whose constants are refused when they are compiled."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from kfp import dsl

from podferry.components import dataset
from podferry.contract.errors import InvalidSpec

URI = "s3://bucket/data"
Build = Callable[[Any, Any], object]
"""Gets a parameter of the pipeline, and a dataset's task."""


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def fit(uri: str, n: int = 3):
    print(uri, n)


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def learn(checkpoints: str):
    print(checkpoints)


@dsl.pipeline
def nested(uri: str):
    fit(uri=uri)


def compiled(build: Build) -> None:
    """Compile what `build` adds to a pipeline."""

    @dsl.pipeline(name="checked")
    def pipeline(given: str):
        build(given, dataset(given))


def assert_refused(build: Build, wanted: Sequence[str]) -> None:
    """It is refused with all these reasons at once."""
    with pytest.raises(InvalidSpec) as caught:
        compiled(build)
    found = [str(problem) for problem in caught.value.problems]
    assert len(found) >= len(wanted)
    assert [part for part in wanted if not any(part in one for one in found)] == [], found
