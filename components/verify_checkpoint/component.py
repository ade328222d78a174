"""The step `verify_checkpoint`, and the function that adds it to a pipeline."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports are inside, outputs are an inline NamedTuple, and lists
# are typing's, with defaults that become part of the component's interface.
# The inputs of a component are flat, so there are many arguments.
# mypy: disable-error-code=valid-type
# ruff: noqa: B006, PLC0415, PLR0913, UP006, UP035
from typing import Any, List, NamedTuple

from kfp import dsl

from podferry.components.step import step, uncached
from podferry.components.store_access import SECRET_DIR


@step
def verify_checkpoint(
    checkpoints: str,
    run: str = "",
    job: str = "",
    lineages: List[str] = [],
    any_run: bool = False,
    full: bool = False,
    allow_doubtful: bool = False,
    endpoint: str = "",
    region: str = "",
) -> NamedTuple("Outputs", [("lineages", List[str]), ("checkpoints", List[str])]):
    """Fail unless the newest checkpoint of each lineage is committed, intact and sure.

    Args:
        checkpoints: The destination of the training.
        run: Identifier of this run; its lineages are those last written by its agents.
        job: Name of this run, which KFP's local runner uses as identifier.
        lineages: Only these lineages, committed by any run; empty for those of this run.
        any_run: All lineages at the destination, committed by any run.
        full: Read every byte and compare checksums, not only names and sizes.
        allow_doubtful: Only name doubtful checkpoints; otherwise they fail the step with exit code 76.
        endpoint: URL of the object store, unless it is the vendor's.
        region: Region of the object store.

    Returns:
        lineages: The verified lineages.
        checkpoints: The URI of the newest checkpoint of each, in the same order.
    """
    from podferry.components.verify_checkpoint.runner import VerifyRequest, run_names, verify_or_exit

    request = VerifyRequest(checkpoints, run_names(run, job), tuple(lineages), any_run, full, allow_doubtful)
    verified = verify_or_exit(request, endpoint, region)
    return ([lineage.name for lineage in verified], [lineage.uri for lineage in verified])


def verify(
    checkpoints: Any,
    *,
    lineages: Any = None,
    any_run: Any = False,
    full: Any = False,
    allow_doubtful: Any = False,
    endpoint: Any = "",
    region: Any = "",
    secret: Any = None,
) -> Any:
    """A task that verifies the checkpoints of this run; KFP's cache is off.

    By default it verifies the lineages last written by this run's agents, and the newest checkpoint of each
    must be from this run. This fails if training was answered from KFP's cache, or resumed with nothing left
    to train. If that may happen, let the training return its lineage and pass it as `lineages`.

    Args:
        checkpoints: The destination. Every argument may be a channel.
        lineages: Lineages to verify, committed by any run: a list, a text, a channel of either, or
            `dsl.Collected` of a sweep.
        any_run: All lineages at the destination, committed by any run.
        full: Read every byte and compare checksums.
        allow_doubtful: Pass if the newest checkpoint of a lineage is doubtful: uploaded, not proven complete.
        endpoint: URL of the object store, unless it is the vendor's.
        region: Region of the object store.
        secret: Name of a Secret with the credentials.

    Returns:
        The task, with the outputs `lineages` and `checkpoints`. Call `.after(training)` on it, unless
        `lineages` is an output of the training.
    """
    task = verify_checkpoint(
        checkpoints=checkpoints,
        # On a cluster the run is identified by its UUID, under KFP's local runner by the job's name.
        # Each is a separate input: KFP's driver fills in a placeholder only if it is the entire value.
        run=dsl.PIPELINE_JOB_ID_PLACEHOLDER,
        job=dsl.PIPELINE_JOB_NAME_PLACEHOLDER,
        lineages=_as_list(lineages),
        any_run=any_run,
        full=full,
        allow_doubtful=allow_doubtful,
        endpoint=endpoint,
        region=region,
    )
    return uncached(task, secret, SECRET_DIR)


def _as_list(lineages: Any) -> Any:
    """Wrap one lineage, a text or a channel of text, in a list."""
    if lineages is None:
        return []
    is_text = isinstance(lineages, str) or getattr(lineages, "channel_type", "") == "String"
    return [lineages] if is_text else lineages
