"""What is known of each checkpoint's version: durable, restored, on its way. Kept in journal and status."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable

import structlog

from podferry.contract.commit import Commit, step_of
from podferry.contract.status import CheckpointStatus, DurableCheckpoint
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.upload_queue import UploadQueue
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import Journal

log = structlog.get_logger(__name__)


class VersionRegistry:
    """The versions that need no pin, and what became of them.

    Args:
        journal: What must outlive this worker.
        status: What is told.
        line: What is held.
        timings: Where durations are counted.
        relieve: Called when something has become durable: it may be freed.
        now: The agent's clock, seconds since the epoch.

    Attributes:
        handled: The version of each name that is durable, restored, offered to other ranks, or held.
    """

    def __init__(
        self,
        journal: Journal,
        status: CheckpointStatus,
        line: UploadQueue,
        timings: Durations,
        relieve: Callable[[], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._journal, self._status, self._line = journal, status, line
        self._timings, self._relieve, self._now = timings, relieve, now
        record = journal.checkpoints
        offered = {name: one.files for name, one in record.published.items()}
        known = record.ignored | record.settled | offered
        self.handled = {name: Candidate(name, files) for name, files in known.items()}
        self.handled.update((held.candidate.name, held.candidate) for held in line.held())
        status.durable = list(record.durable)
        status.restored = record.restored

    def durable(self) -> dict[str, Candidate]:
        """The last durable or restored version of each name."""
        return {name: Candidate(name, files) for name, files in self._journal.checkpoints.settled.items()}

    def mark_restored(self, present: Iterable[Candidate], names: Iterable[str]) -> None:
        """Take what was restored as it lies there now: it needs no upload.

        Args:
            present: What lies in the directory.
            names: The files that were restored.
        """
        wanted = set(names)
        for candidate in present:
            if wanted.intersection(dict(candidate.files)):
                self._remember(candidate)
        self._journal.save()

    def leave_out(self, present: Iterable[Candidate], newest: Commit) -> None:
        """Let be what lay there before this agent and is older than the newest commit.

        Its own commit may have been removed since (`keep-remote`, `gc`); a new one would come after newer
        ones. One that was changed later than that commit's files, or than it was made where they are not
        there, or is of a later step, or is another version of the same name, is no such one.
        """
        lying = {candidate.name: candidate for candidate in present}
        made = newest.created.timestamp()
        if newest.name in lying:  # it was sent after it was written, and what came meanwhile is newer
            made = min(made, lying[newest.name].changed_ns / 1e9)
        for name, candidate in lying.items():
            later = name == newest.name or (step_of(name) or 0) > (newest.step or 0)
            if candidate.changed_ns / 1e9 < made and not later and name not in self.handled:
                log.info("left as it lies: older than the newest commit", name=name)
                self.handled[name] = candidate
                self._journal.checkpoints.ignored[name] = candidate.files
        self._journal.save()

    def committed(self, candidate: Candidate, commit: Commit, completed_at: float) -> None:
        """Take in that a version is durable.

        Args:
            candidate: It, as it lay in the directory.
            commit: What makes it real.
            completed_at: When it was found whole, seconds since the epoch.
        """
        now = self._now()
        seconds = max(now - completed_at, 0.0)
        done = DurableCheckpoint(
            commit.name, commit.sequence, commit.step, commit.bytes, completed_at, durable_at=now
        )
        log.info(
            "checkpoint durable",
            name=commit.name,
            sequence=commit.sequence,
            bytes=commit.bytes,
            seconds=round(seconds, 3),
        )
        self._timings.observe(seconds)
        for known in (self._status.durable, self._journal.checkpoints.durable):
            _enter(known, done)
        self._remember(candidate)
        self._journal.save()
        self._relieve()

    def forget(self, candidate: Candidate) -> None:
        """Let a version be looked at again, unless a newer one has taken its place."""
        if self.handled.get(candidate.name) == candidate:
            del self.handled[candidate.name]

    def keep(self, names: Collection[str]) -> None:
        """Forget what neither lies in the directory nor is on its way: there may be thousands in the end.

        Args:
            names: What lies there.
        """
        record, held = self._journal.checkpoints, {pinned.candidate.name for pinned in self._line.held()}
        wanted = held.union(names, record.published)
        for name in [name for name in record.settled if name not in wanted]:
            del record.settled[name]
        wanted |= record.ignored.keys()
        for name in [name for name in self.handled if name not in wanted]:
            del self.handled[name]

    def _remember(self, candidate: Candidate) -> None:
        self._journal.checkpoints.settled[candidate.name] = candidate.files
        if not self._line.waits(candidate.name):
            self.handled[candidate.name] = candidate


def _enter(known: list[DurableCheckpoint], done: DurableCheckpoint) -> None:
    """Take a commit into a list by its number, which is its age, in place of what was known of it."""
    at = bisect_left(known, done.sequence, key=lambda one: one.sequence)
    if at < len(known) and known[at].sequence == done.sequence:
        known[at] = done
    else:
        known.insert(at, done)
