"""The accelerators and the memory that a training reserves."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from typing import Any

import pytest
from google.protobuf import json_format
from kfp import dsl

from podferry.components import gpu_train
from tests.support.configured_training import REFERENCE, compiled, executor_and_task, fit


def test_resources_may_be_dynamic_and_memory_takes_kubernetes_quantities() -> None:
    def dynamic(frozen: Any, bucket: Any) -> None:
        gpu_train(fit(), dataset=REFERENCE, memory=frozen.outputs["reference"], gpus=bucket)

    container, task = executor_and_task(dynamic)
    assert "pipelinechannel--freeze-reference" in container["resources"]["resourceMemoryLimit"]
    assert "pipelinechannel--freeze-reference" in task["inputs"]["parameters"]
    container, _ = executor_and_task(lambda f, b: gpu_train(fit(), dataset=REFERENCE, memory="1.5Gi", gpus=0))
    assert container["resources"]["resourceMemoryLimit"] == str(3 << 29)
    assert "accelerator" not in container["resources"]


@pytest.mark.parametrize("resource", ["memory", "gpus", "accelerator"])
def test_a_training_runs_after_the_task_that_computes_its_resources(resource: str) -> None:
    """KFP's setters of resources register no dependency, so KFP would start both at once."""

    def body(frozen: Any, bucket: Any) -> None:
        gpu_train(fit(), dataset=REFERENCE, **{resource: frozen.outputs["reference"]})

    _, task = executor_and_task(body)
    assert task["dependentTasks"] == ["freeze"]


def test_resources_reach_a_loop() -> None:
    def body(frozen: Any, bucket: Any) -> None:
        with dsl.ParallelFor([1, 2]) as gpus:
            gpu_train(fit(), dataset=REFERENCE, memory=frozen.outputs["reference"], gpus=gpus)

    spec = json_format.MessageToDict(compiled(body).pipeline_spec)
    loop = next(one for name, one in spec["components"].items() if "dag" in one)
    assert "pipelinechannel--freeze-reference" in loop["dag"]["tasks"]["fit"]["inputs"]["parameters"]
