"""Adds a step that runs a job to a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kfp.dsl.pipeline_channel import PipelineParameterChannel

from podferry.components.cluster_job.settings import setting_problems, settings_of
from podferry.components.constants import constant_problems
from podferry.components.step import RUN_INPUT, exclude_from_cache
from podferry.components.task_arguments import REFERENCE_OUTPUT
from podferry.components.task_marks import OWN_STEP, RUNS_JOB
from podferry.contract.errors import InvalidSpec

OWN_INPUTS = ("dataset", "checkpoints")
"""Settings that are inputs of their own: KFP shows them with the task."""


def add_job(
    component: Any,
    inputs: Mapping[str, Any],
    settings: Mapping[str, Any],
    image: str | None,
    more_settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> Any:
    """A task of a component with these inputs, whose job's pods have these settings.

    KFP's cache may answer it if every dataset is frozen; otherwise the run's id is an input, so that it never
    does, whatever the client's caching options are.

    Args:
        component: It has the inputs `dataset`, `checkpoints` and `settings`.
        inputs: Its other inputs; None is an empty mapping.
        settings: Keywords of the pipeline's author.
        image: Of the step; None for the component's.
        more_settings: Settings of other pods, by the input that takes them.

    Raises:
        InvalidSpec: Every keyword that is no setting, and every constant that is invalid.
    """
    function = component.name.replace("-", "_")
    flat = settings_of(settings)
    others = {name: settings_of(values) for name, values in (more_settings or {}).items()}
    InvalidSpec.raise_any(
        [
            *constant_problems({**inputs, "image": image}),
            *setting_problems(function, flat),
            *(problem for name, values in others.items() for problem in setting_problems(name, values)),
        ]
    )
    own = {name: flat.pop(name) for name in OWN_INPUTS if name in flat}
    datasets = [value for key, value in (flat | own).items() if key.partition(".")[0] == "dataset"]
    task = component(
        **{name: _given(value) for name, value in inputs.items()}, **own, **others, settings=flat
    )
    if not all(map(_is_frozen, datasets)):
        exclude_from_cache(task, RUN_INPUT)
    if image is not None:
        task.set_container_image(image)
    setattr(task, OWN_STEP, True)
    setattr(task, RUNS_JOB, True)
    return task


def jobs_of(of: Any) -> list[Any]:
    """The tasks in `of=` if they are steps that run jobs, which return their lineage and destination.

    Raises:
        InvalidSpec: Some of them are, and some are not.
    """
    tasks = list(of) if isinstance(of, list | tuple) else [of]
    jobs = [task for task in tasks if getattr(task, RUNS_JOB, False)]
    if jobs and len(jobs) < len(tasks):
        what, remedy = "of= mixes steps that run jobs with other steps", "Verify each kind by itself"
        raise InvalidSpec.of(what, ", ".join(task.name for task in jobs), remedy)
    return jobs


def _given(value: Any) -> Any:
    """What KFP accepts: a dict, and no other mapping."""
    return dict(value or {}) if value is None or isinstance(value, Mapping) else value


def _is_frozen(dataset: Any) -> bool:
    """Whether a dataset's text changes with its content: a constant, or what podferry's steps return."""
    if isinstance(dataset, PipelineParameterChannel):
        return dataset.name == REFERENCE_OUTPUT and bool(dataset.task_name)
    return "#sha256=" in str(dataset)
