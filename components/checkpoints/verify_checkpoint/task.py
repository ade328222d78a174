"""`verify_checkpoint` adds the step to a pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kfp import dsl

from podferry.components.checkpoints.verify_checkpoint import component
from podferry.components.cluster_job.task import jobs_of
from podferry.components.step import uncached
from podferry.components.trained_task.carry import artifacts_of, carry, describe, secret_of, tasks_of
from podferry.components.trained_task.place import refuse_task_as_text
from podferry.contract.errors import InvalidSpec, Problem


def verify_checkpoint(  # noqa: PLR0913 - keywords, one per setting
    checkpoints: Any = None,
    *,
    of: Any = None,
    lineages: Any = None,
    any_run: Any = False,
    full: Any = False,
    allow_doubtful: Any = False,
    endpoint: Any = "",
    region: Any = "",
    secret: Any = None,
    image: str | None = None,
) -> Any:
    """A task that verifies the newest checkpoint of training tasks; KFP's cache is off.

    With `of` it computes their lineages from their inputs, and it succeeds if the newest commit of each is
    sure and intact, whichever run has made it: so also after a training that came from KFP's cache, or
    resumed with nothing left to train. Call `gpu_train` on these tasks first.

    Without `of`, `lineages` and `any_run` it verifies the lineages last written by this run's agents, and the
    newest checkpoint of each must be from this run.

    Args:
        checkpoints: The destination; by default that of the tasks in `of`. Every argument but `of` and
            `image` may be a channel.
        of: A training task, or a list of them; or steps that run jobs of one destination. The step runs after
            them.
        lineages: Lineages to verify, committed by any run: a list, a text, a channel of either, or
            `dsl.Collected` of a sweep.
        any_run: All lineages at the destination, committed by any run.
        full: Read every byte and compare checksums.
        allow_doubtful: Pass if the newest checkpoint of a lineage is doubtful: uploaded, not proven complete.
        endpoint: URL of the object store, unless it is that of the tasks in `of`, or the vendor's.
        region: Region of the object store, likewise.
        secret: Name of a Secret with the credentials, likewise.
        image: Image of the step; None for `PODFERRY_IMAGE` or the default.

    Returns:
        The task, with the outputs `lineages` and `checkpoints`. Call `.after(training)` on it, unless it
        has `of`, or `lineages` is an output of the training.

    Raises:
        InvalidSpec: `of` is not a training with checkpoints.
    """
    refuse_task_as_text("checkpoints", checkpoints)
    jobs = jobs_of(of)
    tasks = [] if jobs else tasks_of(of)
    InvalidSpec.raise_any(_conflicts(checkpoints, jobs or tasks, lineages, any_run))
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
        any_run=any_run,
        full=full,
        allow_doubtful=allow_doubtful,
        endpoint=endpoint,
        region=region,
    )
    return uncached(carry(task, tasks), secret_of(tasks) if secret is None else secret, image=image)


def _conflicts(checkpoints: Any, tasks: list[Any], lineages: Any, any_run: Any) -> Iterator[Problem]:
    if tasks and (lineages is not None or any_run):
        yield Problem("of= names the lineages", remedy="Remove lineages= and any_run=")
    if not tasks and checkpoints is None:
        yield Problem("nothing to verify is given", remedy="Give of=TASK, or the destination")


def _as_list(lineages: Any) -> Any:
    """Wrap one lineage, a text or a channel of text, in a list."""
    if lineages is None:
        return []
    is_text = isinstance(lineages, str) or getattr(lineages, "channel_type", "") == "String"
    return [lineages] if is_text else lineages
