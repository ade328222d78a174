"""The step `verify_checkpoint` as a KFP component."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports are inside, outputs are an inline NamedTuple, and lists
# are typing's, with defaults that become part of the component's interface.
# The inputs of a component are flat, so there are many arguments; the artifacts only reach the command line.
# mypy: disable-error-code=valid-type
# ruff: noqa: B006, PLC0415, PLR0913, UP006, UP035, UP045
from typing import Dict, List, NamedTuple, Optional

from kfp import dsl

from podferry.components.step import step


@step
def verify_checkpoint(
    report: dsl.Output[dsl.HTML],
    metrics: dsl.Output[dsl.Metrics],
    model: dsl.Output[dsl.Model],
    checkpoints: str = "",
    run: str = "",
    job: str = "",
    of: List[Dict[str, object]] = [],
    artifact0: Optional[dsl.Input[dsl.Artifact]] = None,
    artifact1: Optional[dsl.Input[dsl.Artifact]] = None,
    artifact2: Optional[dsl.Input[dsl.Artifact]] = None,
    artifact3: Optional[dsl.Input[dsl.Artifact]] = None,
    lineages: List[str] = [],
    any_run: bool = False,
    full: bool = False,
    allow_doubtful: bool = False,
    endpoint: str = "",
    region: str = "",
) -> NamedTuple("Outputs", [("lineages", List[str]), ("checkpoints", List[str])]):
    """Fail unless the newest checkpoint of each lineage is committed, intact and sure.

    Args:
        report: A page about the verified lineages.
        metrics: Their numbers.
        model: The newest checkpoint of all.
        checkpoints: The destination; empty for that of the trainings in `of`.
        run: Identifier of this run; its lineages are those last written by its agents.
        job: Name of this run, which KFP's local runner uses as identifier.
        of: Only the lineages of these training tasks, committed by any run.
        artifact0: With the others, the trainings' input artifacts, which are part of their lineages.
        artifact1: See there.
        artifact2: See there.
        artifact3: See there.
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
    from podferry.components.checkpoints.verify_checkpoint.artifacts import write_artifacts
    from podferry.components.checkpoints.verify_checkpoint.runner import (
        VerifyRequest,
        run_names,
        verify_or_exit,
    )

    request = VerifyRequest(checkpoints, run_names(run, job), tuple(lineages), any_run, full, allow_doubtful)
    verified = verify_or_exit(request, endpoint, region, of)
    write_artifacts(verified, report.path, metrics, model)
    return ([lineage.name for lineage in verified], [lineage.uri for lineage in verified])
