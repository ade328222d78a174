"""`restore_point` adds the step to a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podferry.components.checkpoints.restore_point import component
from podferry.components.step import uncached
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
    def outputs(self) -> Mapping[str, Any]:
        """`uri`, `lineage` and `name` as texts, and the artifact `model`."""
        return {**self.task.outputs, "model": self.importer.output}

    def after(self, *tasks: Any) -> RestorePoint:
        """Have the step run after these tasks."""
        self.task.after(*tasks)
        return self


def restore_point(
    checkpoints: Any = None,
    *,
    of: Any = None,
    lineage: Any = None,
    endpoint: Any = "",
    region: Any = "",
    secret: Any = None,
    image: str | None = None,
) -> RestorePoint:
    """Find the newest checkpoint that is sure and complete; the step fails if there is none.

    Args:
        checkpoints: The destination; by default that of the task in `of`. Every argument but `of` and
            `image` may be a channel.
        of: The training task; the step runs after it. Call `gpu_train` on it first.
        lineage: The lineage, instead of a task.
        endpoint: URL of the object store, unless it is that of the task in `of`, or the vendor's.
        region: Region of the object store, likewise.
        secret: Name of a Secret with the credentials, likewise.
        image: Image of the step; None for `PODFERRY_IMAGE` or the default.

    Returns:
        Its `outputs`: the texts `uri` (also a warm start: `restore` of another training), `lineage` and
        `name`, and `model`, the same place as an imported `Model`.

    Raises:
        InvalidSpec: `of` is not one training with checkpoints, or both or neither of `of` and `lineage` are
            given.
    """
    refuse_task_as_text("checkpoints", checkpoints)
    tasks = tasks_of(of)
    InvalidSpec.raise_any(_problems(checkpoints, tasks, lineage))
    task = component.restore_point(
        checkpoints="" if checkpoints is None else checkpoints,
        lineage="" if lineage is None else lineage,
        of=describe(tasks, checkpoints),
        **artifacts_of(tasks),
        endpoint=endpoint,
        region=region,
    )
    found = uncached(carry(task, tasks), secret_of(tasks) if secret is None else secret, image=image)
    return RestorePoint(found, component.import_checkpoint(uri=found.outputs["uri"]))


def _problems(checkpoints: Any, tasks: list[Any], lineage: Any) -> Iterator[Problem]:
    if len(tasks) > 1:
        yield Problem("of= is one training", f"{len(tasks)} tasks", "Call restore_point once for each")
    if bool(tasks) == (lineage is not None):
        yield Problem("give either of= or lineage=", remedy="Give of=TASK, or the destination and lineage=")
    if not tasks and checkpoints is None:
        yield Problem("the destination is missing", remedy="Give checkpoints= with lineage=")
