"""Constants that cannot work are refused when the pipeline is compiled, all at once."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from collections.abc import Callable
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
from podferry.contract.errors import InvalidSpec

URI = "s3://bucket/data"


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def fit(uri: str, n: int = 3):
    print(uri, n)


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def learn(checkpoints: str):
    print(checkpoints)


@dsl.pipeline
def nested(uri: str):
    fit(uri=uri)


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
    "an empty destination to verify": (
        lambda given, data: verify_checkpoint(""),
        ("nothing to verify is given",),
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
    "a job without a runtime": (
        lambda given, data: train_job("", target=None, start_timeout="5m"),
        (
            "runtime: not the name of an object ('')",
            "target: no value (None)",
            "start_timeout: not an integer of 0 or more ('5m')",
        ),
    ),
    "a step of podferry to configure": (
        lambda given, data: gpu_train(data, checkpoints=given),
        ("gpu_train needs a training, not a step of podferry (dataset). Give it the step that trains",),
    ),
    "a job to configure": (
        lambda given, data: gpu_train(train_job("torch", checkpoints=given)),
        ("gpu_train needs a training, not a step of podferry (train-job)",),
    ),
    "a step of podferry to verify": (
        lambda given, data: verify_checkpoint(given, of=data),
        ("of= needs a training, not a step of podferry (dataset)",),
    ),
    "a restore point to verify": (
        lambda given, data: verify_checkpoint(of=restore_point(given, lineage="a")),
        ("of= needs a step (restore-point)",),
    ),
    "a list of datasets": (
        lambda given, data: gpu_train(fit(uri=URI), dataset=[given, URI]),
        ("dataset: not a text (",),
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
    "an output to configure": (
        lambda given, data: gpu_train(data.outputs["reference"]),
        ("gpu_train needs a step (dataset.outputs['reference']). Give gpu_train the task",),
    ),
    "nothing to configure": (
        lambda given, data: gpu_train(None),
        ("gpu_train needs a step (None). Give gpu_train the task",),
    ),
    "a list of tasks to configure": (
        lambda given, data: gpu_train([data]),
        ("gpu_train needs a step (a list). Give gpu_train the task",),
    ),
    "tasks for resources": (
        lambda given, data: gpu_train(fit(uri=URI), dataset=URI, memory=data, gpus=data, accelerator=data),
        ("memory: a task, not an output", "gpus: a task, not an output", "accelerator: a task, not an"),
    ),
    "an accelerator that is no text": (
        lambda given, data: gpu_train(fit(uri=URI), dataset=URI, accelerator=None),
        ("accelerator: not the name of a resource (None)",),
    ),
    "memory without a unit": (
        lambda given, data: gpu_train(fit(uri=URI), dataset=URI, memory="16", shm_size=8),
        ("memory: 16 B is too little for a process ('16'). Write", "shm_size: 8 B is too little"),
    ),
    "memory in thousandths": (
        lambda given, data: gpu_train(fit(uri=URI), dataset=URI, memory="512m"),
        ("memory: the suffix m means thousandths of a byte ('512m'). Write 512Mi",),
    ),
    "a Secret to mount into a pipeline": (
        lambda given, data: mount_secret(nested(uri=URI), ""),
        ("mount_secret needs a step, not a pipeline or an importer (nested)", "secret: no value ('')"),
    ),
    "a pipeline to configure": (
        lambda given, data: gpu_train(nested),
        ("gpu_train needs a step, not a pipeline or an importer (nested). Inside the pipeline",),
    ),
    "an uncalled pipeline for a location": (
        lambda given, data: dataset(nested),
        ("uri: a component, not an output of a task (nested). Call it",),
    ),
    "empty texts to restore from": (
        lambda given, data: restore_point("", lineage=""),
        ("give either of= or lineage=", "the destination is missing"),
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
    "placeholders inside the inputs of a training": (
        lambda given, data: gpu_train(learn(checkpoints=f"{given}/{dsl.PIPELINE_JOB_NAME_PLACEHOLDER}")),
        ("KFP has not filled in this text ('$(inputs.checkpoints)': '{given}/{{$.pipeline_job_name}}')",),
    ),
    "globs that are no texts": (
        lambda given, data: dataset(given, include=["*.jpg", 3], exclude=7),
        ("include: not a text (['*.jpg', 3]). Write", "exclude: not a text (7). Write"),
    ),
    "globs of a training that are no texts": (
        lambda given, data: gpu_train(fit(uri=URI), dataset=URI, include=["*.jpg", None], restore=["a", 3]),
        ("include: not a text (['*.jpg', None]). Write", "restore: not a text (['a', 3])"),
    ),
    "flags in quotes": (
        lambda given, data: sync(given, "", delete="yes", size_only=None),
        (
            "destination: not a URI",
            "delete: neither True nor False ('yes'). Write",
            "size_only: no value (None)",
        ),
    ),
    "lineages that are no texts": (
        lambda given, data: verify_checkpoint(URI, lineages=[given, 1, None, "a b/c", data], full=1),
        (
            "lineages[1]: not a text (1)",
            "lineages[2]: not a text (None)",
            "lineages[3]: the lineage is not a plain path segment ('a b/c')",
            "lineages[4]: a task, not an output of it (dataset)",
            "full: neither True nor False (1)",
        ),
    ),
    "a lineage that is no text": (
        lambda given, data: verify_checkpoint(URI, lineages=3),
        ("lineages: not a list of lineages (3)",),
    ),
    "a lineage that is no name": (
        lambda given, data: verify_checkpoint(URI, lineages="a b"),
        ("lineages: the lineage is not a plain path segment ('a b')",),
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
    "a restore point to restore": (
        lambda given, data: gpu_train(learn(checkpoints=URI), restore=restore_point(given, lineage="a")),
        ("restore: a task, not an output of it (restore-point). Pass one of its outputs",),
    ),
    "a task that has no outputs": (
        lambda given, data: dataset(fit(uri=URI)),
        ("uri: a task, not an output of it (fit). It has no outputs",),
    ),
    "a number in place of a location": (
        lambda given, data: gpu_train(fit(uri=URI), dataset=data.outputs["files"]),
        ("dataset: an output of type Integer (dataset.outputs['files']). Pass a text",),
    ),
    "memory with an output in it": (
        lambda given, data: gpu_train(fit(uri=URI), dataset=URI, memory=f"{given}Gi"),
        ("memory: KFP takes no text with an output in it ('{given}Gi'). Pass",),
    ),
    "the memory of a plan without the training's own": (
        lambda given, data: gpu_train(
            fit(uri=URI), dataset=URI, gpus=-1, memory=cache(given).outputs["process_memory"]
        ),
        (
            "gpus: not an integer",
            "memory: cache.outputs['process_memory'] will be empty (no train_memory). Give train_memory=",
        ),
    ),
    "the memory of a plan with an empty text": (
        lambda given, data: gpu_train(
            fit(uri=URI), dataset=URI, memory=cache(given, train_memory="").outputs["process_memory"]
        ),
        ("memory: cache.outputs['process_memory'] will be empty (no train_memory)",),
    ),
    "a setting with the name of no dataset": (
        lambda given, data: gpu_train(fit(uri=URI), dataset={"a b": given}),
        ("dataset.a b: gpu_train has no such setting (given)",),
    ),
    "an output to verify": (
        lambda given, data: verify_checkpoint(of=data.outputs["reference"]),
        ("of= needs a step (dataset.outputs['reference']). Give of= the task",),
    ),
    "an image without a name": (lambda given, data: why(image=""), ("image: not the name of an image ('')",)),
    "a component to verify": (
        lambda given, data: verify_checkpoint(of=fit),
        ("of= needs a step, not a component (fit). Call it",),
    ),
    "a component to configure": (
        lambda given, data: gpu_train(fit),
        ("gpu_train needs a step, not a component (fit). Call it",),
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
