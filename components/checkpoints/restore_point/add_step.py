"""Adds the step `restore_point` to a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podferry.components.checkpoints.restore_point import component
from podferry.components.cluster_job.task import jobs_of
from podferry.components.step import check_constants, is_absent, uncached
from podferry.components.trained_task.carry import artifacts_of, carry, describe, secret_of, tasks_of
from podferry.components.trained_task.place import refuse_task_as_text
from podferry.contract.errors import InvalidSpec, Problem


@dataclass(frozen=True, slots=True)
class RestorePoint:
    """What `restore_point` adds to a pipeline.

    Attributes:
        task: The step that finds the checkpoint.
        importer: The task that imports it as an artifact.
    """

    task: Any
    importer: Any

    @property
    def name(self) -> str:
        """That of the step."""
        return str(self.task.name)

    @property
    def outputs(self) -> Mapping[str, Any]:
        """`uri`, `lineage` and `name` as texts, and the artifact `model`."""
        return {**self.task.outputs, "model": self.importer.output}

    def after(self, *tasks: Any) -> RestorePoint:
        """Have the step run after these tasks."""
        self.task.after(*tasks)
        return self


def add_step(
    of: Any, checkpoints: Any, lineage: Any, access: Mapping[str, Any], secret: Any, image: str | None
) -> RestorePoint:
    """See `restore_point`; `access` is the endpoint and the region."""
    refuse_task_as_text("checkpoints", checkpoints)
    jobs = jobs_of(of)
    tasks = [] if jobs else tasks_of(of)
    InvalidSpec.raise_any(_problems(checkpoints, jobs or tasks, lineage))
    for job in jobs:
        lineage = job.outputs["lineage"]
        checkpoints = job.outputs["checkpoints"] if checkpoints is None else checkpoints
    check_constants(checkpoints=checkpoints, lineage=lineage, secret=secret, image=image, **access)
    task = component.restore_point(
        checkpoints="" if checkpoints is None else checkpoints,
        lineage="" if lineage is None else lineage,
        of=describe(tasks, checkpoints),
        **artifacts_of(tasks),
        **access,
    )
    found = uncached(carry(task, tasks), secret_of(tasks) if secret is None else secret, image=image)
    return RestorePoint(found, component.import_checkpoint(uri=found.outputs["uri"]))


def _problems(checkpoints: Any, tasks: list[Any], lineage: Any) -> Iterator[Problem]:
    if len(tasks) > 1:
        yield Problem("of= is one training", f"{len(tasks)} tasks", "Call restore_point once for each")
    if bool(tasks) != is_absent(lineage):
        yield Problem("give either of= or lineage=", remedy="Give of=TASK, or the destination and lineage=")
    if not tasks and is_absent(checkpoints):
        yield Problem("the destination is missing", remedy="Give checkpoints= with lineage=")
