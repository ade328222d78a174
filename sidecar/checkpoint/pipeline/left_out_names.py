"""Reports the names in the checkpoint directory that are not uploaded, and at the end what that loses."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import structlog

from podferry.contract.errors import Problem
from podferry.contract.status import CheckpointStatus
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.detect.directory_scan import LeftOut
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry

log = structlog.get_logger(__name__)

MAX_SHOWN = 50
"""Names that are listed one by one; all are counted."""
MAX_LOGGED = 1000
"""Names that are remembered as logged."""
REMEDY = "Give finished files another name; copy what a link leads to, or hard-link it"


class LeftOutNames:
    """What a detector has left out."""

    def __init__(self, detector: Detector, registry: VersionRegistry, status: CheckpointStatus) -> None:
        self._detector, self._registry, self._status = detector, registry, status
        self._last: Mapping[str, LeftOut] = {}
        self._logged: set[str] = set()

    def report(self) -> None:
        """Update the status; log each name once that is left out by two scans as it is."""
        found = self._detector.left_out
        if found is self._last:
            return
        self._status.ignored_names = {name: found[name].reason for name in sorted(found)[:MAX_SHOWN]}
        self._status.ignored_count = len(found)
        for name, one in found.items():
            if self._last.get(name) == one and name not in self._logged and len(self._logged) < MAX_LOGGED:
                self._logged.add(name)
                log.log(
                    logging.WARNING if one.loses else logging.INFO,
                    "not uploaded",
                    name=name,
                    reason=one.reason,
                )
        self._last = found

    def ignore(self, left_out: Mapping[str, LeftOut]) -> None:
        """Nothing that is left out before training starts is lost by this run."""
        self._registry.ignore(Candidate(name, one.files) for name, one in left_out.items() if one.loses)

    def lost(self) -> dict[str, Problem]:
        """The names whose data is lost if the directory is, if nothing is written any more."""
        settled = self._registry.settled()
        return {
            name: Problem(f"{name} is not uploaded", one.reason, REMEDY)
            for name, one in sorted(self._detector.left_out.items())
            if one.loses and not Candidate(name, one.files).is_subset_of(settled.get(name))
        }
