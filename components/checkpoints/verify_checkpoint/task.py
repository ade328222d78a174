"""`verify_checkpoint` adds the step to a pipeline."""

from __future__ import annotations

from typing import Any

# Here, so that it is made before a pipeline is: within one, KFP makes no inner pipelines.
from podferry.components.checkpoints.verify_checkpoint import component  # noqa: F401


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
        InvalidSpec: `of` is not a training with checkpoints, or a constant is invalid.
    """
    # Imported on call: it takes longer than all the names of `podferry.components` together.
    from podferry.components.checkpoints.verify_checkpoint.add_step import add_step  # noqa: PLC0415

    options = {"any_run": any_run, "full": full, "allow_doubtful": allow_doubtful}
    access = {"endpoint": endpoint, "region": region}
    return add_step(of, checkpoints, lineages, options | access, secret, image)
