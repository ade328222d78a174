"""Keeps room in the checkpoint volume for the next checkpoint, and says in time where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

import structlog

from podferry.contract.errors import Problem
from podferry.contract.quantity import format_bytes
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.pipeline.local_eviction import evict, evictable, pointers
from podferry.sidecar.config.tuning import CheckpointSettings

log = structlog.get_logger(__name__)

REMEDY = "Raise podferry.io/checkpoint-size, or save less often: durable checkpoints alone are freed"


class VolumePressure:
    """The checkpoint volume.

    Args:
        detector: Knows what lies there.
        settings: From when on it counts as pressed, and as full.
        keep: How many of the newest durable ones stay.
    """

    def __init__(self, detector: Detector, settings: CheckpointSettings, keep: int) -> None:
        self._detector, self._settings, self._keep = detector, settings, keep
        self._told = ""

    def relieve(self, durable: Mapping[str, Candidate], order: Sequence[str]) -> Problem | None:
        """Free durable checkpoints while the volume is pressed.

        Args:
            durable: The durable version of each name.
            order: Names of what was made durable, oldest first.

        Returns:
            That there is too little room all the same; None where there is enough.
        """
        if self._pressed():
            self._free(durable, order)
        problem = self._problem()
        what = problem.what if problem else ""
        if problem is not None and what != self._told:
            log.warning(problem.what, measured=problem.measured, remedy=problem.remedy)
        self._told = what
        return problem

    def _free(self, durable: Mapping[str, Candidate], order: Sequence[str]) -> None:
        root, present = self._detector.root, self._detector.present
        unchanged = {name: one for name, one in present.items() if one.is_subset_of(durable.get(name))}
        # By the last commit of each name: a name that is written again and again is as old as its newest.
        names = list(dict.fromkeys(reversed(order)))[::-1]
        for candidate in evictable(names, unchanged, self._keep, pointers(root, present)):
            if evict(root, candidate):
                del present[candidate.name]
            if not self._pressed():
                return

    def _pressed(self) -> bool:
        """Whether little is left, by share of the volume or because the next checkpoint would not fit."""
        usage = shutil.disk_usage(self._detector.root)
        return usage.used > self._settings.eviction_threshold * usage.total or usage.free < self._next()

    def _next(self) -> int:
        """Bytes that the next checkpoint may need: as many as the largest that lies there."""
        return max((one.bytes for one in self._detector.present.values()), default=0)

    def _problem(self) -> Problem | None:
        usage, needed = shutil.disk_usage(self._detector.root), self._next()
        if usage.used > self._settings.full_threshold * usage.total:
            measured = f"{format_bytes(usage.used)} of {format_bytes(usage.total)} are in use"
            return Problem("the checkpoint volume is full", measured, REMEDY)
        if usage.free < needed:
            measured = f"{format_bytes(usage.free)} are free, the largest has {format_bytes(needed)}"
            return Problem("the next checkpoint may not fit into its volume", measured, REMEDY)
        return None
