"""The durable checkpoints that journal and status list: bounded, since a month of training has thousands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec
import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.status import CheckpointStatus, DurableCheckpoint, newest_durable
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import CheckpointVersion
from podferry.sidecar.state.journal import CheckpointRecord

log = structlog.get_logger(__name__)

DURABLE_SHOWN = 50
"""Durable checkpoints that are listed one by one; all are counted."""


def bounded(durable: Iterable[DurableCheckpoint], local: Collection[str]) -> list[DurableCheckpoint]:
    """The newest of `durable`, which is sorted, and the newest of each name whose files are `local`.

    The local ones decide what is evicted, and whether a restarted worker knows them. The newest that training
    can resume from stays as well, however many metrics were written since.
    """
    found = list(durable)
    newest = {one.name: one.sequence for one in found if one.name in local}
    kept = {*newest.values(), *(one.sequence for one in found[-DURABLE_SHOWN:])}
    if (last := newest_durable(found)) is not None:
        kept.add(last.sequence)
    return [one for one in found if one.sequence in kept]


class DurableList:
    """What this agent committed, in the journal's record and in the status.

    `now` returns seconds since the epoch.
    """

    def __init__(self, record: CheckpointRecord, status: CheckpointStatus, now: Callable[[], float]) -> None:
        self._record, self._status, self._now = record, status, now
        record.durable_count = max(record.durable_count, len(record.durable))
        self._show()

    def __iter__(self) -> Iterator[DurableCheckpoint]:
        return iter(self._record.durable)

    def add(self, version: CheckpointVersion, commit: Commit, local: Collection[str]) -> float:
        """List one more; `local` are the names whose files are in the directory.

        Returns:
            The seconds from its last write to its commit.
        """
        doubts = tuple(doubt.reason for doubt in version.candidate.doubts)
        found = commit.name, commit.sequence, commit.step, commit.bytes
        known = {one.sequence: one for one in self._record.durable}
        self._record.durable_count += commit.sequence not in known
        done = DurableCheckpoint(*found, version.completed_at, self._now(), doubts, commit.kind)
        known[commit.sequence] = done
        self._record.durable = bounded((known[sequence] for sequence in sorted(known)), local)
        self._show()
        return _report(done)

    def confirm(self, sequence: int) -> None:
        """A commit has no doubts any more."""
        self._record.durable[:] = [
            msgspec.structs.replace(one, doubts=()) if one.sequence == sequence else one
            for one in self._record.durable
        ]
        self._show()

    def _show(self) -> None:
        self._status.durable = bounded(self._record.durable, ())
        self._status.durable_count = self._record.durable_count


def _report(done: DurableCheckpoint) -> float:
    seconds = max(done.durable_at - done.completed_at, 0.0)
    doubts = {"doubts": done.doubts} if done.doubts else {}
    fields = {"name": done.name, "sequence": done.sequence, "bytes": done.bytes}
    log.info("checkpoint durable", **fields, seconds=round(seconds, 3), **doubts)
    return seconds
