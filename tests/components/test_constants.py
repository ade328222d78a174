"""Constants that cannot work are refused when the pipeline is compiled, all at once."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from collections.abc import Callable
from typing import Any

import pytest
from kfp import dsl

from podferry.components import (
    cache,
    dataset,
    gpu_train,
    mount_secret,
    paddle_job,
    prepare,
    restore_point,
    sync,
    train_job,
    verify_checkpoint,
    why,
)
from podferry.components.secret_dir import SECRET_DIR
from podferry.contract.errors import InvalidSpec

URI = "s3://bucket/data"


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def fit(uri: str, n: int = 3):
    print(uri, n)


def compiled(build: Callable[[Any, Any], object]) -> None:
    """`build` gets a parameter of the pipeline, and a dataset's task."""

    @dsl.pipeline(name="checked")
    def pipeline(given: str):
        build(given, dataset(given))


REFUSED = {
    "every constant of a dataset": (
        lambda given, data: dataset(
            "", fits="lots", secret="My_Secret", endpoint="store", include=["a[", "b"]
        ),
        (
            "uri: not a URI ('')",
            "fits: not a quantity ('lots')",
            "secret: not a valid Secret",
            "endpoint: not an",
        ),
    ),
    "a number for a size": (lambda given, data: dataset(given, fits=64), ("fits: not a text (64)",)),
    "a task for a location": (
        lambda given, data: cache(data),
        ("reference: a task, not an output of it (dataset). Pass one of its outputs",),
    ),
    "a component for a location": (
        lambda given, data: dataset(fit),
        ("uri: a component, not an output of a task (fit). Call it",),
    ),
    "sizes of a plan": (
        lambda given, data: cache(given, checkpoint_size="1 elephant", pod_memory="x"),
        ("checkpoint_size: not a quantity", "pod_memory: not a quantity"),
    ),
    "a web server as a destination": (
        lambda given, data: sync(given, "https://x/y", source_secret="S"),
        ("destination: a web server cannot be", "source_secret: not a valid Secret name ('S')"),
    ),
    "a conversion": (
        lambda given, data: prepare(given, "a b", to=URI, parameters={"n": None, "of": [1, {"m": None}]}),
        (
            "command: not a list of words",
            "parameters['n']: KFP passes no None",
            "parameters['of'][1]['m']: KFP",
        ),
    ),
    "what is verified": (
        lambda given, data: verify_checkpoint("data", any_run=True, secret="S"),
        ("checkpoints: not a URI ('data')", "secret: not a valid Secret"),
    ),
    "a restore point": (
        lambda given, data: restore_point("data", lineage="a/b", endpoint="store"),
        ("checkpoints: not a URI ('data')", "lineage: ", "endpoint: not an endpoint"),
    ),
    "a job": (
        lambda given, data: train_job("torch", trainer="x", spec=[1], checkpoint_size="lots", colour="red"),
        (
            "trainer: not a mapping ('x')",
            "spec: not a mapping",
            "checkpoint_size: not a quan",
            "colour: train_job has",
        ),
    ),
    "a job with servers": (
        lambda given, data: paddle_job("x", server_settings={"colour": "red"}),
        ("worker: not a mapping ('x')", "colour: server_settings has no such setting"),
    ),
    "a Secret to mount": (
        lambda given, data: mount_secret(data, "My_Secret"),
        ("secret: not a valid Secret name ('My_Secret')",),
    ),
    "an image without a name": (lambda given, data: why(image=""), ("image: the value is empty",)),
    "a component to verify": (
        lambda given, data: verify_checkpoint(of=fit),
        ("of= is a component, not a task (fit). Call it",),
    ),
    "a component to configure": (
        lambda given, data: gpu_train(fit),
        ("gpu_train needs a task, not a component (fit). Call it",),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_constants_are_refused_with_every_reason(name: str) -> None:
    build, wanted = REFUSED[name]
    with pytest.raises(InvalidSpec) as caught:
        compiled(build)
    found = [str(problem) for problem in caught.value.problems]
    assert len(found) >= len(wanted)
    assert [part for part in wanted if not any(part in one for one in found)] == [], found


def test_channels_and_texts_with_them_are_not_refused() -> None:
    def build(given: Any, data: Any) -> None:
        dataset(f"{given}/x", fits=given, secret=given, include=[given, "*.png"], endpoint=given)
        prepare(given, ["convert", given], to=f"{given}/y", parameters={"n": given})
        train_job(given, trainer={"image": given}, checkpoints=f"{given}/z", checkpoint_size=given)

    compiled(build)


def test_globs_may_be_a_list() -> None:
    found: list[Any] = []

    def build(given: Any, data: Any) -> None:
        found.extend(
            (
                dataset(given, include=["*.jpg", "*.png"], exclude=("x",)),
                cache(given, include=["*.jpg", "*.png"]),
                sync(given, URI, include=["*.jpg", "*.png"]),
            )
        )

    compiled(build)
    assert [task.inputs["include"] for task in found] == ["*.jpg\n*.png"] * 3
    assert found[0].inputs["exclude"] == "x"


def test_a_secret_is_mounted_where_prepared_looks() -> None:
    def build(given: Any, data: Any) -> None:
        assert mount_secret(data, given) is data
        [mount] = data.platform_config["kubernetes"]["secretAsVolume"]
        assert mount["mountPath"] == str(SECRET_DIR)
        assert mount["optional"] is True

    compiled(build)
