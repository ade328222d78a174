"""Keeps space in the checkpoint volume for the next checkpoint, and warns in time if there is too little."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog

from podferry.contract.errors import Problem
from podferry.contract.quantity import format_bytes
from podferry.contract.status import DurableCheckpoint
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.pipeline.local_eviction import evict, evictable, pointer_text
from podferry.sidecar.config.tuning import CheckpointSettings

log = structlog.get_logger(__name__)

REMEDY = (
    "Give it more space with podferry.io/checkpoint-size or --checkpoint-path, or save less often: only "
    "durable checkpoints are evicted"
)


class Usage(NamedTuple):
    """Bytes of a volume."""

    total: int
    used: int
    free: int


AWAY = Usage(sys.maxsize, 0, sys.maxsize)
"""While there is no directory."""


class VolumePressure:
    """The checkpoint volume; the `keep` newest durable checkpoints and the newest sure one stay."""

    def __init__(self, detector: Detector, settings: CheckpointSettings, keep: int) -> None:
        self._detector, self._settings, self._keep = detector, settings, keep
        self._warned = ""

    def evict_if_needed(
        self, durable: Mapping[str, Candidate], commits: Sequence[DurableCheckpoint]
    ) -> Problem | None:
        """Evict durable checkpoints under pressure; returns the problem if space is still short, or None.

        `durable` has the durable version of each name, `commits` at least the newest of each, oldest first.
        """
        if self._is_pressed():
            self._evict(durable, commits)
        return self._reported()

    def evict_given_up(self, candidates: Sequence[Candidate]) -> Problem | None:
        """Evict what is never uploaded, oldest first, and keep the `keep` newest; returns as above.

        A trainer whose checkpoints another pod writes would else end with a full volume.
        """
        present = self._detector.present
        unchanged = [one for one in candidates if one.name in present and one.is_subset_of(present[one.name])]
        for candidate in unchanged[: -max(self._keep, 1)]:
            if not self._is_pressed():
                break
            if evict(self._detector.root, candidate):
                del present[candidate.name]
                self._detector.not_ready.pop(candidate.name, None)
        return self._reported()

    def _reported(self) -> Problem | None:
        problem = self._problem()
        what = problem.what if problem else ""
        if problem is not None and what != self._warned:
            log.warning(problem.what, measured=problem.measured, remedy=problem.remedy)
        self._warned = what
        return problem

    def _evict(self, durable: Mapping[str, Candidate], commits: Sequence[DurableCheckpoint]) -> None:
        root, present = self._detector.root, self._detector.present
        unchanged = {name: one for name, one in present.items() if one.is_subset_of(durable.get(name))}
        # A link and what it leads to are needed together, in whatever checkpoint each is.
        linked = {*self._detector.links, *self._detector.links.values()}
        unchanged = {name: one for name, one in unchanged.items() if linked.isdisjoint(dict(one.files))}
        # By the newest commit of each name: a name that is saved repeatedly is as old as its newest version.
        newest = {one.name: one for one in commits}
        order = sorted(newest.values(), key=lambda one: one.sequence)
        for candidate in evictable(order, unchanged, self._keep, pointer_text(root, present)):
            if evict(root, candidate):
                del present[candidate.name]
            if not self._is_pressed():
                return

    def _is_pressed(self) -> bool:
        """Whether little is free, by share of the volume or because the next checkpoint would not fit."""
        usage = self._usage()
        return usage.used > self._settings.eviction_threshold * usage.total or usage.free < self._next_bytes()

    def _usage(self) -> Usage:
        """Of the volume; a trainer may have removed the directory, to create it again."""
        try:
            found = shutil.disk_usage(self._detector.root)
        except (FileNotFoundError, NotADirectoryError):
            return AWAY
        return Usage(found.total, found.used, found.free)

    def _next_bytes(self) -> int:
        """Bytes that the next checkpoint may need: the size of the largest that is there."""
        return max((one.bytes for one in self._detector.present.values()), default=0)

    def _problem(self) -> Problem | None:
        usage, needed = self._usage(), self._next_bytes()
        if usage.used > self._settings.full_threshold * usage.total:
            measured = f"{format_bytes(usage.used)} of {format_bytes(usage.total)} are in use"
            return Problem("the checkpoint volume is full", measured, REMEDY)
        if usage.free < needed:
            measured = f"{format_bytes(usage.free)} are free, the largest has {format_bytes(needed)}"
            return Problem("the next checkpoint may not fit into its volume", measured, REMEDY)
        return None
