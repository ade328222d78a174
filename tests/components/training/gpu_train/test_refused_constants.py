"""Constants of `gpu_train` that cannot work are refused when the pipeline is compiled, all at once."""

import pytest
from kfp import dsl

from podferry.components import cache, gpu_train, restore_point, train_job
from tests.support.refused_constants import URI, assert_refused, fit, learn, nested

REFUSED = {
    "a step of podferry to configure": (
        lambda given, data: gpu_train(data, checkpoints=given),
        ("gpu_train needs a training, not a step of podferry (dataset). Give it the step that trains",),
    ),
    "a job to configure": (
        lambda given, data: gpu_train(train_job("torch", checkpoints=given)),
        ("gpu_train needs a training, not a step of podferry (train-job)",),
    ),
    "a list of datasets": (
        lambda given, data: gpu_train(fit(uri=URI), dataset=[given, URI]),
        ("dataset: not a text (",),
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
        (
            "memory: a number without a unit means bytes ('16'). Write 16Mi or 16Gi",
            "shm_size: a number without",
        ),
    ),
    "memory in thousandths": (
        lambda given, data: gpu_train(fit(uri=URI), dataset=URI, memory="512m"),
        ("memory: the suffix m means thousandths of a byte ('512m'). Write 512Mi",),
    ),
    "a pipeline to configure": (
        lambda given, data: gpu_train(nested),
        ("gpu_train needs a step, not a pipeline or an importer (nested). Inside the pipeline",),
    ),
    "placeholders inside the inputs of a training": (
        lambda given, data: gpu_train(learn(checkpoints=f"{given}/{dsl.PIPELINE_JOB_NAME_PLACEHOLDER}")),
        ("KFP has not filled in this text ('$(inputs.checkpoints)': '{given}/{{$.pipeline_job_name}}')",),
    ),
    "globs of a training that are no texts": (
        lambda given, data: gpu_train(fit(uri=URI), dataset=URI, include=["*.jpg", None], restore=["a", 3]),
        ("include: not a text (['*.jpg', None]). Write", "restore: not a text (['a', 3])"),
    ),
    "a restore point to restore": (
        lambda given, data: gpu_train(learn(checkpoints=URI), restore=restore_point(given, lineage="a")),
        ("restore: a task, not an output of it (restore-point). Pass one of its outputs",),
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
    "a component to configure": (
        lambda given, data: gpu_train(fit),
        ("gpu_train needs a step, not a component (fit). Call it",),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_constants_are_refused_with_every_reason(name: str) -> None:
    assert_refused(*REFUSED[name])
