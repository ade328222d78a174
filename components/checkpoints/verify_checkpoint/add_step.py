"""Adds the step `verify_checkpoint` to a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kfp import dsl

from podferry.components.checkpoints.verify_checkpoint import component
from podferry.components.cluster_job.task import jobs_of
from podferry.components.step import check_constants, is_absent, uncached
from podferry.components.trained_task.carry import artifacts_of, carry, describe, secret_of, tasks_of
from podferry.components.trained_task.place import refuse_task_as_text
from podferry.contract.errors import InvalidSpec, Problem


def add_step(
    of: Any, checkpoints: Any, lineages: Any, options: Mapping[str, Any], secret: Any, image: str | None
) -> Any:
    """See `verify_checkpoint`; `options` are the component's other inputs."""
    refuse_task_as_text("checkpoints", checkpoints)
    jobs = jobs_of(of)
    tasks = [] if jobs else tasks_of(of)
    InvalidSpec.raise_any(_conflicts(checkpoints, jobs or tasks, lineages, options["any_run"]))
    check_constants(checkpoints=checkpoints, lineages=lineages, secret=secret, image=image, **options)
    if jobs:
        lineages = [job.outputs["lineage"] for job in jobs]
        checkpoints = jobs[0].outputs["checkpoints"] if checkpoints is None else checkpoints
    task = component.verify_checkpoint(
        checkpoints="" if checkpoints is None else checkpoints,
        # Identifies the run under KFP's local runner; on a cluster its UUID does, which `uncached` passes.
        # Two inputs: KFP's driver fills in a placeholder only if it is the entire value.
        job=dsl.PIPELINE_JOB_NAME_PLACEHOLDER,
        of=describe(tasks, checkpoints),
        **artifacts_of(tasks),
        lineages=_as_list(lineages),
        **options,
    )
    return uncached(carry(task, tasks), secret_of(tasks) if secret is None else secret, image=image)


def _conflicts(checkpoints: Any, tasks: list[Any], lineages: Any, any_run: Any) -> Iterator[Problem]:
    if tasks and (lineages is not None or any_run):
        yield Problem("of= names the lineages", remedy="Remove lineages= and any_run=")
    if not tasks and is_absent(checkpoints):
        yield Problem("nothing to verify is given", remedy="Give of=TASK, or the destination")


def _as_list(lineages: Any) -> Any:
    """Wrap one lineage, a text or a channel of text, in a list."""
    if lineages is None:
        return []
    is_text = isinstance(lineages, str) or getattr(lineages, "channel_type", "") == "String"
    return [lineages] if is_text else lineages
