"""Where a step that looks for a training's checkpoints may be."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from collections.abc import Callable
from typing import Any

import pytest
from kfp import dsl

from podferry.components import restore_point, verify_checkpoint
from podferry.contract.errors import InvalidSpec

Follow = Callable[..., Any]
FOLLOWERS = pytest.mark.parametrize("follow", [verify_checkpoint, restore_point])


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def fit(checkpoints: str, lr: float) -> None:
    pass


@FOLLOWERS
def test_outside_of_the_loop_of_its_training(follow: Follow) -> None:
    def pipeline(out: str) -> None:
        with dsl.ParallelFor([0.1, 0.2]) as lr:
            step = fit(checkpoints=out, lr=lr)
        follow(of=step)

    with pytest.raises(InvalidSpec, match=r"in a ParallelFor, and this step is outside \(fit\)"):
        dsl.pipeline(name="outside")(pipeline)


@FOLLOWERS
def test_in_the_loop_of_its_training_or_in_one_after_it(follow: Follow) -> None:
    def pipeline(out: str) -> None:
        step = fit(checkpoints=out, lr=0.1)
        with dsl.ParallelFor([0.1, 0.2]) as lr:
            follow(of=fit(checkpoints=out, lr=lr))
            follow(of=step)

    assert dsl.pipeline(name="inside")(pipeline).pipeline_spec


@FOLLOWERS
def test_a_training_of_another_pipeline(follow: Follow) -> None:
    steps = []

    def first(out: str) -> None:
        steps.append(fit(checkpoints=out, lr=0.1))

    def second(out: str) -> None:
        follow(of=steps[0])

    dsl.pipeline(name="first")(first)
    with pytest.raises(InvalidSpec, match=r"of= is a step of another pipeline \(fit\)"):
        dsl.pipeline(name="second")(second)


@FOLLOWERS
def test_a_training_in_place_of_the_destination(follow: Follow) -> None:
    def pipeline(out: str) -> None:
        follow(fit(checkpoints=out, lr=0.1))

    with pytest.raises(
        InvalidSpec, match=r"checkpoints is a task, not a location \(fit\)\. Give the task as of="
    ):
        dsl.pipeline(name="positional")(pipeline)
