"""Findings become a page, and lines of the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from podferry.components.diagnosis.why.findings import Finding, problem_in
from podferry.components.reports.document import Document, Section, Table
from podferry.components.verdict import ERROR
from podferry.contract.errors import Problem

COLUMNS = ("task", "what", "measured", "remedy")
REASON = re.compile(rf"({re.escape(ERROR)}|podferry(\.\w+)+: )(?P<reason>.+)")
"""A line about what is wrong: a verdict's, or the end of a traceback, with the error's type."""
NOT_A_CLUSTER = Problem(
    "why explains runs on a cluster only",
    "this process runs in no pod",
    "Locally, look at the task's output above",
)


def page(
    findings: Sequence[Finding], logs: Iterable[Section], notes: Iterable[Problem], pods: int
) -> Document:
    """The page about a run.

    Args:
        findings: The tasks that did not succeed.
        logs: The ends of their logs.
        notes: Which right is missing, or why nothing can be found out.
        pods: How many pods the run has.
    """
    said = tuple(str(note) for note in notes)
    rows = tuple(_row(finding, problem) for finding in findings for problem in finding.problems)
    tables = (Table("Tasks that failed", COLUMNS, rows),) if rows else ()
    title = "Why this run failed" if findings else "The run's tasks"
    return Document(title, _verdict(findings, pods), _good(findings, pods), tables, tuple(logs), said)


def with_reasons(finding: Finding, log: str) -> Finding:
    """A finding with the reasons that podferry has written to the task's log, before all others."""
    reasons = [problem_in(match["reason"]) for match in map(REASON.match, log.splitlines()) if match]
    return replace(finding, problems=(*reasons, *finding.problems))


def _row(finding: Finding, problem: Problem) -> tuple[str, ...]:
    return (finding.task, problem.what, problem.measured, problem.remedy)


def _verdict(findings: Sequence[Finding], pods: int) -> str:
    if findings:
        return f"{len(findings)} of the run's tasks failed: {', '.join(one.task for one in findings)}"
    return f"Nothing failed: {pods} pods of the run" if pods else "Nothing is known about the run's pods"


def _good(findings: Sequence[Finding], pods: int) -> bool | None:
    return False if findings else True if pods else None
