"""The step `verify_checkpoint`, and the function that puts it into a pipeline."""

# KFP copies the function's source alone into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports stand inside, outputs are a NamedTuple in place, and
# lists are typing's, with defaults that go into the component's interface.
# A component's inputs are flat, hence many arguments.
# mypy: disable-error-code=valid-type
# ruff: noqa: B006, PLC0415, PLR0913, UP006, UP035
from typing import Any, List, NamedTuple

from kfp import dsl

from podferry.components.step import step, verdict
from podferry.components.store_access import SECRET_DIR


@step
def verify_checkpoint(
    checkpoints: str,
    run: str = "",
    job: str = "",
    lineages: List[str] = [],
    any_run: bool = False,
    full: bool = False,
    endpoint: str = "",
    region: str = "",
) -> NamedTuple("Outputs", [("lineages", List[str]), ("checkpoints", List[str])]):
    """Red unless each lineage has a whole, committed newest checkpoint.

    Args:
        checkpoints: The destination that the training uploaded to.
        run: This run's identifier; its lineages are those that its agents wrote to last.
        job: This run's name, which KFP's local runner uses for it.
        lineages: These alone, whichever run committed; empty for those of the run.
        any_run: Every lineage at the destination, whichever run committed.
        full: Read every byte and compare checksums, rather than names and sizes.
        endpoint: Address of the service, where it is not the vendor's own.
        region: The vendor's name of the region.

    Returns:
        lineages: What was verified.
        checkpoints: The URI of each one's newest checkpoint, in the same order.
    """
    from podferry.components.verify_checkpoint.runner import Question, own_runs, verify

    question = Question(checkpoints, own_runs(run, job), tuple(lineages), any_run, full)
    found = verify(question, endpoint, region)
    return ([one.lineage for one in found], [one.uri for one in found])


def verify(
    checkpoints: Any,
    *,
    lineages: Any = None,
    any_run: Any = False,
    full: Any = False,
    endpoint: Any = "",
    region: Any = "",
    secret: Any = None,
) -> Any:
    """A task that verifies what this run trained; it looks at the store whatever KFP's cache holds.

    By default the lineages are those that this run's agents wrote to last, and the newest checkpoint of
    each must be of this run. That is red where training came from KFP's cache, or resumed and had nothing
    left to train. Where that may happen, let the training return its lineage and pass it as `lineages`.

    Args:
        checkpoints: The destination. Every argument may be a channel.
        lineages: Lineages to verify, whichever run committed: a list, a text, a channel of either, or
            `dsl.Collected` of a sweep.
        any_run: Every lineage at the destination, whichever run committed.
        full: Read every byte and compare checksums.
        endpoint: Address of the service, where it is not the vendor's own.
        region: The vendor's name of the region.
        secret: Name of a Secret with the credentials.

    Returns:
        The task, with the outputs `lineages` and `checkpoints`. Put it `.after(...)` the training, unless
        `lineages` is an output of it.
    """
    task = verify_checkpoint(
        checkpoints=checkpoints,
        # A cluster's webhook commits under the run's UUID; KFP's local runner has the job's name instead.
        # Each is an input of its own: KFP's driver fills in a placeholder only where it stands alone.
        run=dsl.PIPELINE_JOB_ID_PLACEHOLDER,
        job=dsl.PIPELINE_JOB_NAME_PLACEHOLDER,
        lineages=_as_list(lineages),
        any_run=any_run,
        full=full,
        endpoint=endpoint,
        region=region,
    )
    return verdict(task, secret, SECRET_DIR)


def _as_list(lineages: Any) -> Any:
    """One lineage, as a text or a channel of text, becomes a list of it."""
    if lineages is None:
        return []
    is_text = isinstance(lineages, str) or getattr(lineages, "channel_type", "") == "String"
    return [lineages] if is_text else lineages
