"""The step `why` as a KFP component."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, and imports are inside.
# ruff: noqa: PLC0415
from kfp import dsl

from podferry.components.step import step


@step
def why(report: dsl.Output[dsl.Markdown], run: str = "") -> None:
    """Explain which tasks of a run have failed, with what was measured and the remedy.

    Args:
        report: The explanation.
        run: Identifier of the run.
    """
    from podferry.components.diagnosis.why.runner import explain_run

    explain_run(run, report.path)
