"""Runs the step `why`: reads the pods of a run, and writes what failed and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from podferry.components.diagnosis.why.explain import NOT_A_CLUSTER, page, with_reasons
from podferry.components.diagnosis.why.findings import Finding, finding_of, merged
from podferry.components.diagnosis.why.run_events import Event, event_findings
from podferry.components.diagnosis.why.run_pods import unfinished
from podferry.components.log_tables import print_line
from podferry.components.reports.document import Document, Section
from podferry.components.reports.render import markdown, write
from podferry.contract.errors import FerryError, Problem
from podferry.contract.pod_owner import KFP_RUN_LABEL
from podferry.trainer.pod_api import PodApi, pod_api

LOG_LINES = 30
"""Of a failed task, the last ones."""


def explain_run(run: str, path: str) -> Document:
    """Write the page about a run to `path`, and print it; a missing right is on the page, never an error."""
    found = look(run, pod_api(os.environ))
    text = markdown(found)
    write(path, text)
    print_line(text)
    return found


def look(run: str, api: PodApi | None) -> Document:
    """The page about a run; `api` is None outside a cluster."""
    if api is None:
        return page((), (), (NOT_A_CLUSTER,), 0)
    try:
        pods = api.pods(f"{KFP_RUN_LABEL}={run}")
    except FerryError as error:
        return page((), (), error.problems, 0)
    events, denied = _events(api)
    by_status = [found for found in map(finding_of, unfinished(pods)) if found is not None]
    findings = merged(by_status, event_findings(events, pods))
    logs = _Logs(api)
    read = [logs.of(finding) for finding in findings]
    explained = [with_reasons(finding, log) for finding, log in zip(findings, read, strict=True)]
    sections = [_section(finding, log) for finding, log in zip(findings, read, strict=True) if log]
    return page(explained, sections, [*logs.problems, *denied, *_no_pods(run, pods)], len(pods))


def _events(api: PodApi) -> tuple[Sequence[Event], Sequence[Problem]]:
    """The warnings of the namespace, or why they cannot be read."""
    try:
        return api.warnings(), ()
    except FerryError as error:
        return (), error.problems


class _Logs:
    """Reads the ends of logs, and keeps once why they cannot be read."""

    def __init__(self, api: PodApi) -> None:
        self._api = api
        self.problems: list[Problem] = []

    def of(self, finding: Finding) -> str:
        """The end of a task's log; empty if it says nothing more, or cannot be read."""
        if not finding.log_of:
            return ""
        try:
            return self._api.log(finding.pod, finding.log_of, LOG_LINES).rstrip()
        except FerryError as error:
            self.problems += [one for one in error.problems if one not in self.problems]
            return ""


def _section(finding: Finding, log: str) -> Section:
    return Section(f"{finding.task}: the end of its log", log=log)


def _no_pods(run: str, pods: Iterable[object]) -> Iterable[Problem]:
    if not pods:
        what = "the run has no pods in this namespace"
        yield Problem(
            what,
            f"{KFP_RUN_LABEL}={run}",
            "They may be deleted already: keep the pods of finished runs longer",
        )
