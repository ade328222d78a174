"""`verify_checkpoint` adds the step to a pipeline."""

from __future__ import annotations

from typing import Any

from kfp import dsl

from podferry.components.checkpoints.verify_checkpoint import component
from podferry.components.step import uncached


def verify_checkpoint(  # noqa: PLR0913 - keywords, one per setting
    checkpoints: Any,
    *,
    lineages: Any = None,
    any_run: Any = False,
    full: Any = False,
    allow_doubtful: Any = False,
    endpoint: Any = "",
    region: Any = "",
    secret: Any = None,
    image: str | None = None,
) -> Any:
    """A task that verifies the checkpoints of this run; KFP's cache is off.

    By default it verifies the lineages last written by this run's agents, and the newest checkpoint of each
    must be from this run. This fails if training was answered from KFP's cache, or resumed with nothing left
    to train. If that may happen, let the training return its lineage and pass it as `lineages`.

    Args:
        checkpoints: The destination. Every argument but `image` may be a channel.
        lineages: Lineages to verify, committed by any run: a list, a text, a channel of either, or
            `dsl.Collected` of a sweep.
        any_run: All lineages at the destination, committed by any run.
        full: Read every byte and compare checksums.
        allow_doubtful: Pass if the newest checkpoint of a lineage is doubtful: uploaded, not proven complete.
        endpoint: URL of the object store, unless it is the vendor's.
        region: Region of the object store.
        secret: Name of a Secret with the credentials; None for the pod's identity.
        image: Image of the step; None for `PODFERRY_IMAGE` or the default.

    Returns:
        The task, with the outputs `lineages` and `checkpoints`. Call `.after(training)` on it, unless
        `lineages` is an output of the training.
    """
    task = component.verify_checkpoint(
        checkpoints=checkpoints,
        # Identifies the run under KFP's local runner; on a cluster its UUID does, which `uncached` passes.
        # Two inputs: KFP's driver fills in a placeholder only if it is the entire value.
        job=dsl.PIPELINE_JOB_NAME_PLACEHOLDER,
        lineages=_as_list(lineages),
        any_run=any_run,
        full=full,
        allow_doubtful=allow_doubtful,
        endpoint=endpoint,
        region=region,
    )
    return uncached(task, secret, image=image)


def _as_list(lineages: Any) -> Any:
    """Wrap one lineage, a text or a channel of text, in a list."""
    if lineages is None:
        return []
    is_text = isinstance(lineages, str) or getattr(lineages, "channel_type", "") == "String"
    return [lineages] if is_text else lineages
