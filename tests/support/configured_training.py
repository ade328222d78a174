"""Trainings that `gpu_train` configures in a compiled pipeline."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from google.protobuf import json_format
from kfp import dsl

from podferry.contract.errors import InvalidSpec

Pod = dict[str, Any]
PipelineBody = Callable[..., Any]
REFERENCE = f"s3://data/digits#sha256={'0' * 64}&bytes=100&files=1"


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def freeze(uri: str, data: dsl.Output[dsl.Dataset]) -> NamedTuple(
    "O", [("reference", str), ("files", float)]
):
    return (uri, 1.0)


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def fit(uri: str = "", uri2: str = "", lr: float = 0.1, data: dsl.Input[dsl.Dataset] = None) -> str:
    return uri


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def learn(dataset: str, checkpoints: str, outputs: str = "") -> str:
    return dataset


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def count(dataset: int, checkpoints: str, outputs: str = "") -> str:
    return checkpoints


def compiled(body: PipelineBody) -> Any:
    """A pipeline that runs `freeze`, then `body(frozen, bucket)`."""

    @dsl.pipeline(name="p")
    def pipeline(bucket: str = "b") -> None:
        body(freeze(uri="u"), bucket)

    return pipeline


def annotations(body: PipelineBody, executor: str = "exec-fit") -> dict[str, str]:
    """The annotations of a compiled task."""
    platform = json_format.MessageToDict(compiled(body).platform_spec)
    found = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"][executor]
    texts: dict[str, str] = found["podMetadata"]["annotations"]
    return texts


def executor_and_task(body: PipelineBody) -> tuple[dict[str, Any], dict[str, Any]]:
    """The executor's container and the task of `fit`, as compiled."""
    spec = json_format.MessageToDict(compiled(body).pipeline_spec)
    container = spec["deploymentSpec"]["executors"]["exec-fit"]["container"]
    return container, spec["root"]["dag"]["tasks"]["fit"]


@contextmanager
def refused() -> Iterator[list[str]]:
    """Collects the problems that the block must raise."""
    problems: list[str] = []
    with pytest.raises(InvalidSpec) as caught:
        yield problems
    problems += map(str, caught.value.problems)
