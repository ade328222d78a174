"""Constants that cannot work are refused when the pipeline is compiled, all at once."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from pathlib import Path
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
from podferry.components.data.dataset.runner import freeze_dataset
from podferry.components.secret_dir import SECRET_DIR
from tests.support.refused_constants import URI, assert_refused, compiled, fit, learn, nested

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
    "None in place of texts": (
        lambda given, data: dataset(None, fits=None, include=None, endpoint=None),
        ("uri: no value (None). Write", "fits: no value (None). Leave", "include: no", "endpoint: no value"),
    ),
    "None in place of a conversion": (
        lambda given, data: prepare(given, None, to=None),
        ("command: no value (None)", "to: no value (None)"),
    ),
    "an image with a blank": (
        lambda given, data: dataset(given, image="my image"),
        ("image: not the name of an image ('my image')",),
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
    "a job": (
        lambda given, data: train_job("torch", trainer="x", spec=[1], checkpoint_size="lots", colour="red"),
        (
            "trainer: not a mapping ('x')",
            "spec: not a mapping",
            "checkpoint_size: not a quan",
            "colour: train_job has",
        ),
    ),
    "a job without a runtime": (
        lambda given, data: train_job("", target=None, start_timeout="5m"),
        (
            "runtime: not the name of an object ('')",
            "target: no value (None)",
            "start_timeout: not an integer of 0 or more ('5m')",
        ),
    ),
    "a list of datasets of a job": (
        lambda given, data: train_job("torch", dataset=[URI], secret=["s3"]),
        ("dataset: not a text (['s3://bucket/data'])", "secret: not a text (['s3'])"),
    ),
    "globs of a job that are no texts": (
        lambda given, data: train_job("torch", include=["*.jpg", 3], checkpoint_size="lots"),
        ("include: not a text (['*.jpg', 3])", "checkpoint_size: not a quan"),
    ),
    "a job with servers": (
        lambda given, data: paddle_job("x", server_settings={"colour": "red"}),
        ("worker: not a mapping ('x')", "colour: server_settings has no such setting"),
    ),
    "a Secret to mount": (
        lambda given, data: mount_secret(data, "My_Secret"),
        ("secret: not a valid Secret name ('My_Secret')",),
    ),
    "no Secret to mount": (lambda given, data: mount_secret(data, None), ("secret: no value (None)",)),
    "a Secret without a name to mount": (
        lambda given, data: mount_secret(data, ""),
        ("secret: no value ('')",),
    ),
    "a Secret to mount into a component": (
        lambda given, data: mount_secret(fit, "s3"),
        ("mount_secret needs a step, not a component (fit). Call it",),
    ),
    "a Secret to mount into nothing": (
        lambda given, data: mount_secret(None, "My_Secret"),
        ("mount_secret needs a step (None)", "secret: not a valid Secret"),
    ),
    "a Secret to mount into a pipeline": (
        lambda given, data: mount_secret(nested(uri=URI), ""),
        ("mount_secret needs a step, not a pipeline or an importer (nested)", "secret: no value ('')"),
    ),
    "an uncalled pipeline for a location": (
        lambda given, data: dataset(nested),
        ("uri: a component, not an output of a task (nested). Call it",),
    ),
    "placeholders inside texts": (
        lambda given, data: sync(
            f"s3://data/{dsl.PIPELINE_JOB_NAME_PLACEHOLDER}", f"{given}/{dsl.PIPELINE_JOB_ID_PLACEHOLDER}"
        ),
        (
            "source: KFP has not filled in this text ('s3://data/{{$.pipeline_job_name}}'). KFP fills in",
            "destination: KFP has not filled in this text ('{given}/{{$.pipeline_job_uuid}}')",
        ),
    ),
    "globs that are no texts": (
        lambda given, data: dataset(given, include=["*.jpg", 3], exclude=7),
        ("include: not a text (['*.jpg', 3]). Write", "exclude: not a text (7). Write"),
    ),
    "flags in quotes": (
        lambda given, data: sync(given, "", delete="yes", size_only=None),
        (
            "destination: not a URI",
            "delete: neither True nor False ('yes'). Write",
            "size_only: no value (None)",
        ),
    ),
    "wrong choices and counts": (
        lambda given, data: cache(given, medium="ssd", unpack="maybe", shards=0, keep_local="all"),
        (
            "medium: unknown value ('ssd'). Write",
            "unpack: unknown value ('maybe'). Write",
            "shards: not an integer of 1 or more (0). Write 1 or more",
            "keep_local: not an integer of 0 or more ('all')",
        ),
    ),
    "words and parameters that KFP does not pass": (
        lambda given, data: prepare(
            given, ["sh", 3, None, data], to=URI, parameters={"when": URI.encode(), "n": [1, None]}
        ),
        (
            "command[1]: not a text (3)",
            "command[2]: KFP passes no None",
            "command[3]: a task, not an output of it (dataset)",
            "parameters['when']: KFP passes no bytes (b's3://",
            "parameters['n'][1]: KFP passes no None",
        ),
    ),
    "a restore point in place of its URI": (
        lambda given, data: dataset(restore_point(given, lineage="a")),
        ("uri: a task, not an output of it (restore-point). Pass one of its outputs",),
    ),
    "a task that has no outputs": (
        lambda given, data: dataset(fit(uri=URI)),
        ("uri: a task, not an output of it (fit). It has no outputs",),
    ),
    "an image without a name": (lambda given, data: why(image=""), ("image: not the name of an image ('')",)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_constants_are_refused_with_every_reason(name: str) -> None:
    assert_refused(*REFUSED[name])


def test_channels_and_texts_with_them_are_not_refused() -> None:
    def build(given: Any, data: Any) -> None:
        dataset(f"{given}/x", fits=given, secret=given, include=[given, "*.png"], endpoint=given)
        prepare(given, ["convert", given], to=f"{given}/y", parameters={"n": given})
        gpu_train(fit(uri=given), dataset=given, include=[given, "*.png"], memory=given, shm_size=given)
        gpu_train(learn(checkpoints=dsl.PIPELINE_ROOT_PLACEHOLDER))
        verify_checkpoint(given, lineages=[given])
        restore_point(given, lineage=dsl.PIPELINE_JOB_NAME_PLACEHOLDER)
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
        jobs.append(train_job("torch", include={"val": [given, "my file"]}))

    jobs: list[Any] = []
    compiled(build)
    assert jobs[0].inputs["settings"] == {
        "include.val": "{{channel:task=;name=given;type=String;}}\nmy\\ file"
    }
    assert [task.inputs["include"] for task in found] == ["*.jpg\n*.png"] * 3
    assert found[0].inputs["exclude"] == "x"


def test_a_glob_of_a_list_may_have_blanks(tmp_path: Path) -> None:
    (tmp_path / "my file.txt").write_text("x")
    (tmp_path / "file.txt").write_text("y")
    found: list[Any] = []
    compiled(lambda given, data: found.append(dataset(given, include=["my file.txt"])))
    frozen = freeze_dataset(str(tmp_path), include=found[0].inputs["include"])
    assert frozen.files == 1
    assert frozen.document.bytes == 1


def test_a_secret_is_mounted_where_prepared_looks() -> None:
    def build(given: Any, data: Any) -> None:
        assert mount_secret(data, given) is data
        [mount] = data.platform_config["kubernetes"]["secretAsVolume"]
        assert mount["mountPath"] == str(SECRET_DIR)
        assert mount["optional"] is True

    compiled(build)


def test_an_empty_name_of_a_secret_mounts_none() -> None:
    def build(given: Any, data: Any) -> None:
        for task in (dataset(given, secret=""), sync(given, URI, source_secret="", destination_secret="")):
            assert "secretAsVolume" not in task.platform_config.get("kubernetes", {})

    compiled(build)
