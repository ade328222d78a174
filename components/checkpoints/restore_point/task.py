"""`restore_point` adds the step to a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Here, so that it is made before a pipeline is: within one, KFP makes no inner pipelines.
from podferry.components.checkpoints.restore_point import component  # noqa: F401

if TYPE_CHECKING:
    from podferry.components.checkpoints.restore_point.add_step import RestorePoint


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
        of: The training task, or the step that runs a job; the step runs after it. Call `gpu_train` on a
            training first.
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
            given, or a constant is invalid.
    """
    # Imported on call: it takes longer than all the names of `podferry.components` together.
    from podferry.components.checkpoints.restore_point.add_step import add_step  # noqa: PLC0415

    return add_step(of, checkpoints, lineage, {"endpoint": endpoint, "region": region}, secret, image)
