"""Adds a step that runs a job to a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kfp import dsl
from kfp.dsl.pipeline_channel import PipelineParameterChannel

from podferry.components.cluster_job.settings import settings_of
from podferry.components.training.gpu_train.input_refs import REFERENCE_OUTPUT

OWN_INPUTS = ("dataset", "checkpoints")
"""Settings that are inputs of their own: KFP shows them with the task."""


def add_job(component: Any, inputs: Mapping[str, Any], settings: Mapping[str, Any], image: str | None) -> Any:
    """A task of a component with these inputs, whose job's pods have these settings.

    KFP's cache may answer it if every dataset is frozen; otherwise the run's id is an input, so that it never
    does, whatever the client's caching options are.

    Raises:
        InvalidSpec: Every keyword of `settings` that is no setting.
    """
    flat = settings_of(component.name.replace("-", "_"), settings)
    own = {name: flat.pop(name) for name in OWN_INPUTS if name in flat}
    datasets = [value for key, value in (flat | own).items() if key.partition(".")[0] == "dataset"]
    frozen = all(map(_is_frozen, datasets))
    run = "" if frozen else dsl.PIPELINE_JOB_ID_PLACEHOLDER
    task = component(**inputs, **own, settings=flat, run=run)
    if not frozen:
        task.set_caching_options(False)
    return task if image is None else task.set_container_image(image)


def _is_frozen(dataset: Any) -> bool:
    """Whether a dataset's text changes with its content: a constant, or what podferry's steps return."""
    if isinstance(dataset, PipelineParameterChannel):
        return dataset.name == REFERENCE_OUTPUT and bool(dataset.task_name)
    return "#sha256=" in str(dataset)
