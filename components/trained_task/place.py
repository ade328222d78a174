"""Checks where in a pipeline a step is that takes the inputs of a training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kfp import dsl
from kfp.dsl.pipeline_context import Pipeline

from podferry.contract.errors import InvalidSpec, Problem


def problems_of_place(task: Any) -> Iterator[Problem]:
    """A training of another pipeline, or of a loop that the step is not in: KFP has no inputs of either.

    KFP reports other groups itself (`dsl.If`, `dsl.ExitHandler`), by name.
    """
    pipeline, groups = Pipeline.get_default_pipeline(), list(_groups(task))
    if pipeline is None or not groups:
        return
    if groups[-1] is not pipeline.groups[0]:
        remedy = "Call this step in the pipeline that calls the training"
        yield Problem("of= is a step of another pipeline", task.name, remedy)
    elif any(isinstance(one, dsl.ParallelFor) and one not in pipeline.groups for one in groups):
        what, remedy = (
            "of= is a step in a ParallelFor, and this step is outside",
            "Call this step in the loop too",
        )
        yield Problem(what, task.name, f"{remedy}: each training is looked up by itself")


def refuse_task_as_text(name: str, value: Any) -> None:
    """Raise `InvalidSpec` if a task is given where a text belongs: `step(task)` for `step(of=task)`."""
    if isinstance(value, dsl.PipelineTask):
        raise InvalidSpec.of(f"{name} is a task, not a location", value.name, "Give the task as of=")


def _groups(task: Any) -> Iterator[Any]:
    """The groups that contain a task, from the innermost to the pipeline's own."""
    group = getattr(task, "parent_task_group", None)
    while group is not None:
        yield group
        group = group.parent_task_group
