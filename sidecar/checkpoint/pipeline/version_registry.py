"""Owns the versions of all checkpoints, moves them, and alone writes what the journal has of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

import structlog

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import FerryError
from podferry.contract.status import CheckpointStatus, DurableCheckpoint, PassedOver, RestoredStatus
from podferry.sidecar.checkpoint.commit.commit_log import SequencePlace
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import (
    DURABLE,
    LINKED,
    SETTLED,
    UNPINNED,
    WAITING,
    CheckpointVersion,
    VersionState,
)
from podferry.sidecar.checkpoint.pipeline.doubt_ledger import DoubtLedger
from podferry.sidecar.checkpoint.pipeline.durable_list import DurableList
from podferry.sidecar.checkpoint.pipeline.older_candidates import is_late
from podferry.sidecar.checkpoint.pipeline.sequence_place import CommitOrder, place_of
from podferry.sidecar.checkpoint.pipeline.version_record import ignored, read_versions, write_versions
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import DoubtfulCommit, Journal, PublishedPart

log = structlog.get_logger(__name__)


class VersionRegistry:
    """All versions, in the order in which they were found, which is their age.

    The journal keeps what must outlive this worker; `held` is what earlier workers held, oldest first.
    `on_durable` is called when a version may be evicted; `now` returns seconds since the epoch.
    """

    def __init__(
        self,
        journal: Journal,
        status: CheckpointStatus,
        held: Iterable[HeldCheckpoint],
        durations: Durations,
        on_durable: Callable[[], None],
        now: Callable[[], float] = time.time,
        rank: int | None = None,
    ) -> None:
        self._journal, self._record, self._status = journal, journal.checkpoints, status
        self._durations, self._on_durable, self._now = durations, on_durable, now
        self._doubts = DoubtLedger(self._record, rank)
        self._versions = list(read_versions(self._record, held, self._doubts))
        self._order = CommitOrder(self._record)
        self._durable = DurableList(self._record, status, now)
        status.restored = self._record.restored

    def in_state(self, *states: VersionState) -> list[CheckpointVersion]:
        """The versions in any of these states, oldest first."""
        return [version for version in self._versions if version.state in states]

    def settled(self) -> dict[str, Candidate]:
        """The newest version of each name that needs no new upload if a scan finds it again."""
        return {version.name: version.candidate for version in self.in_state(*SETTLED)}

    def durable(self) -> dict[str, Candidate]:
        """The newest durable version of each name."""
        return {version.name: version.candidate for version in self.in_state(*DURABLE)}

    def fingerprints(self, name: str) -> Mapping[str, str]:
        """XXH3-128 of each file of the newest durable version, by its name; empty if unknown."""
        return self._record.fingerprints.get(name, {})

    def forget_durable(self, name: str) -> None:
        """The durable version has other content by now: a scan finds what is there as a new version."""
        for version in self.in_state(*DURABLE):
            if version.name == name:
                version.move(VersionState.CHANGED)
        self._save()

    def unpinned(self) -> list[CheckpointVersion]:
        """Versions that are complete, or were until they changed, and are not held."""
        return self.in_state(*UNPINNED)

    def published(self) -> list[CheckpointVersion]:
        """Parts of this rank that wait for those of the other ranks."""
        return self.in_state(VersionState.PUBLISHED)

    def failure(self, name: str) -> FerryError | None:
        """The error of the newest version of a checkpoint that has failed, or None."""
        newest_first = reversed(self._versions)
        return next((one.failure for one in newest_first if one.name == name and one.failure), None)

    def detect(
        self, found: Iterable[Candidate], before: Collection[CheckpointVersion]
    ) -> list[CheckpointVersion]:
        """Record what a scan found complete, oldest first.

        `before` was `unpinned` when the scan began: it has decided about them.
        """
        changed = {one.candidate.version for one in before if one.state is VersionState.CHANGED}
        detected = [
            CheckpointVersion(one, VersionState.DETECTED, rewritten=one.version in changed) for one in found
        ]
        self._versions = [version for version in self._versions if version not in before] + detected
        return detected

    def hold(self, version: CheckpointVersion, hold: HeldCheckpoint) -> list[CheckpointVersion]:
        """Queue a version whose files are linked; returns the waiting older versions, which it replaces."""
        own = [older for older in self._versions if older.name == version.name and older is not version]
        replaced = [older for older in own if older.state in WAITING]
        version.failure = next((older.failure for older in replaced if older.failure), None)
        version.move(VersionState.HELD, hold=hold)
        for older in replaced:
            self._order.replace(older.number, version.number)
            older.move(VersionState.REPLACED)
        gone = UNPINNED | {VersionState.REPLACED, VersionState.SUPERSEDED}
        self._drop(older for older in own if older.state in gone)
        return replaced

    def reject(self, version: CheckpointVersion) -> None:
        """Drop a detected version that cannot be held; the detector reports why."""
        self._drop([version])

    def move(self, version: CheckpointVersion, to: VersionState) -> None:
        """Move a version to a state without data of its own; saves the journal if it was published."""
        published = version.state is VersionState.PUBLISHED
        if version.state is VersionState.SENT and to is not VersionState.HELD:
            self._order.settle(version.number, self._waiting_numbers())
        version.move(to)
        if published:
            self._save()

    def keep_parts(self) -> None:
        """A published part was published again: a restarted worker publishes it in this form."""
        self._save()

    def publish(self, version: CheckpointVersion, part: PublishedPart) -> None:
        """The other ranks know a version that was sent; an older part of its name gives way."""
        for older in self.published():
            if older.name == version.name:
                older.move(VersionState.REPLACED)
                self._drop([older])
        version.move(VersionState.PUBLISHED, part=part)
        self._save()

    def commit(self, version: CheckpointVersion, commit: Commit) -> None:
        """A version that was sent or published has become durable: `commit` lists it."""
        if version.state is VersionState.SENT:
            self._order.settle(version.number, self._waiting_numbers())
        if version.state is VersionState.SENT and commit.agent_id == self._journal.agent.agent_id:
            self._order.commit(version.number, commit.sequence, self._waiting_numbers())
        sent = version.part.sent if version.state is VersionState.PUBLISHED else commit.files
        self._record.fingerprints[version.name] = {file.name: file.xxh128 for file in sent}
        version.move(VersionState.COMMITTED)
        self._drop([one for one in self.in_state(*DURABLE) if one.name == version.name][:-1])
        self._doubts.add(version.candidate, commit)
        self._durations.observe(self._durable.add(version, commit, self.durable()))
        self._save()
        self._on_durable()

    def settle(self, proven: Collection[Candidate]) -> None:
        """These versions are proven complete, whatever state they are in."""
        versions = {candidate.version for candidate in proven}
        for version in [one for one in self._versions if one.candidate.version in versions]:
            if version.state in LINKED and version.candidate.doubts:
                version.hold.note_proof()
            version.settle_doubts()
        if self._doubts.settle(proven):
            self._journal.save()

    def confirming(self) -> list[DoubtfulCommit]:
        """Commits that are proven complete and not confirmed at the destination yet, oldest first."""
        return self._doubts.confirming()

    def confirm(self, commit: DoubtfulCommit) -> None:
        """A commit is confirmed at the destination: its checkpoint is sure."""
        self._doubts.confirmed(commit)
        self._durable.confirm(commit.sequence)
        log.info("checkpoint confirmed", name=commit.name, sequence=commit.sequence)
        self._journal.save()

    def restore(
        self, present: Iterable[Candidate], fingerprints: Mapping[str, str], restored: RestoredStatus | None
    ) -> None:
        """Record the restored files as they are in the directory now: they need no upload.

        `fingerprints` has their XXH3-128 by name.
        """
        files = set(fingerprints)
        found = [one for one in present if files.intersection(dict(one.files))]
        replaced = {candidate.name for candidate in found}
        self._drop(version for version in self.in_state(*DURABLE) if version.name in replaced)
        # Older than what an earlier worker held under the same name.
        at = len(self._versions) - len(self.in_state(VersionState.HELD))
        self._versions[at:at] = [CheckpointVersion(one, VersionState.RESTORED) for one in found]
        for name in replaced:
            self._record.fingerprints[name] = dict(fingerprints)
        self._record.restored = self._status.restored = restored
        self._save()

    def pass_over(self, passed_over: Iterable[PassedOver], count: int, leftovers: Iterable[str] = ()) -> None:
        """Record the newest of the `count` commits that training does not resume from; `restore` saves it.

        `leftovers`: where an earlier run's were moved to.
        """
        self._record.passed_over, self._record.passed_over_count = list(passed_over), count
        self._record.leftovers = list(leftovers)

    def exclude(self, damaged: Iterable[str], abandoned: tuple[int, int] | None) -> None:
        """Record what at the destination this run does not build on; `restore` saves it."""
        self._record.damaged, self._record.abandoned = list(damaged), abandoned

    def ignore(self, found: Iterable[Candidate]) -> None:
        """Ignore what was in the directory before this agent, as long as it stays as it is."""
        self._versions += [ignored(one) for one in found]
        self._save()

    def prune(self, names: Collection[str]) -> None:
        """Drop settled versions neither in the directory (`names`) nor in flight: they would be thousands."""
        final = DURABLE | {VersionState.SUPERSEDED}
        kept = {version.name for version in self._versions if version.state not in final}.union(names)
        self._versions = [one for one in self._versions if one.state not in final or one.name in kept]

    def begin_commit(self, version: CheckpointVersion) -> SequencePlace:
        """Which sequence the commit of a version gets; if older ones wait, the journal says that it began."""
        waiting = self._waiting_numbers()
        if self._order.begin(version.number, waiting):
            self._journal.save()
        place = place_of(version.number, waiting, self._record.sequences)
        return replace(place, late=place.below is None and is_late(version, self._versions))

    @property
    def unsettled(self) -> int:
        """The highest number of a waiting version that may be committed, or 0: older ones wait for it."""
        return self._order.unsettled(self._waiting_numbers())

    def _waiting_numbers(self) -> list[int]:
        return [version.number for version in self.in_state(*WAITING)]

    def commits(self) -> list[DurableCheckpoint]:
        """The newest that this agent committed, and all whose files are still local, by sequence."""
        return list(self._durable)

    def _drop(self, versions: Iterable[CheckpointVersion]) -> None:
        gone = set(versions)
        self._versions = [version for version in self._versions if version not in gone]

    def _save(self) -> None:
        write_versions(self._record, self._versions)
        self._journal.save()
