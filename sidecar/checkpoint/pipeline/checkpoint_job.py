"""The checkpoints' part of an agent: check the destination, restore, ferry."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import structlog

from podferry.contract.commit import Commit
from podferry.contract.errors import Problem, Refused
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import CheckpointSpec
from podferry.contract.status import CheckpointStatus, RestoredStatus
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.handover import Handover
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.commit.retention import Retention
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.detect.watcher import Watch, open_watch
from podferry.sidecar.checkpoint.gang.coordinator import GangCoordinator
from podferry.sidecar.checkpoint.pipeline.dependencies import Dependencies
from podferry.sidecar.checkpoint.pipeline.pipeline import CheckpointPipeline
from podferry.sidecar.checkpoint.restore.downloader import bytes_to_restore
from podferry.sidecar.checkpoint.restore.restore import (
    RestoreSource,
    restore,
    restore_source_of,
    restored_status,
)
from podferry.sidecar.checkpoint.upload.hardlink_hold import HardlinkHolds
from podferry.sidecar.checkpoint.upload.upload_journal import UploadJournals
from podferry.sidecar.checkpoint.upload.uploader import Uploader
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.store_access import store_config
from podferry.sidecar.staging.volume_capacity import measure
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import Journal
from podferry.sidecar.state.upload_counters import UploadCounters
from podferry.storage.factory import open_store

log = structlog.get_logger(__name__)


class CheckpointJob:
    """Keeps the checkpoints of one lineage."""

    def __init__(
        self, spec: CheckpointSpec, config: AgentConfig, journal: Journal, state: AgentState
    ) -> None:
        directories, lineage = config.directories, config.spec.lineage
        # The entry point resolves all three wherever there are checkpoints.
        assert directories.checkpoints is not None and directories.holds is not None  # noqa: PT018, S101
        assert lineage is not None  # noqa: S101
        self._spec, self._config, self._journal, self._state = spec, config, journal, state
        self._root, self._pins, self._lineage = directories.checkpoints, directories.holds, lineage
        self._author = AgentIdentity(journal.agent.writer, config.spec.world, config.run_id, config.spec.rank)
        self._aside = directories.holds.parent / "restoring"
        self._committer: Committer | None = None
        self._gang: GangCoordinator | None = None
        self._source: RestoreSource | None = None
        self._watch: Watch | None = None
        self._restored_names: list[str] = []
        self.restored: RestoredStatus | None = journal.checkpoints.restored
        self.handover: Handover | None = None
        state.status.checkpoints = CheckpointStatus(uri=spec.uri, path=spec.path, lineage=lineage)

    def connect(self) -> Committer:
        """The committer at the destination; nothing is sent yet.

        Raises:
            CredentialsMissing, UnknownScheme, InvalidWish: There is no way to reach it.
        """
        if self._committer is None:
            access = store_config(self._spec.access, self._config.checkpoint_secret)
            store = LineageStore(open_store(self._spec.parsed, access), self._lineage)
            attempts = self._config.tuning.checkpoint.attempts
            self._committer = Committer(CommitReader(store), self._author, _now, attempts)
            self.handover = Handover(store, self._author, _now)
            if self._gang_wished:
                self._gang = GangCoordinator(self._committer, time.time)
        return self._committer

    @property
    def _gang_wished(self) -> bool:
        return self._author.world > 1

    async def plan(self) -> None:
        """Find out that the destination takes writes, what to restore, and that there is room for it.

        Raises:
            Refused, NotFound, FormatTooNew and the store's errors: Why it will not work.
        """
        Refused.raise_any(self._unfit())
        access = store_config(self._spec.access, self._config.checkpoint_secret)
        committer = self.connect()
        await committer.announce()
        self._source = await restore_source_of(self._spec.restore, committer.reader, access)
        commits = await self._source.commits() if self._source else []
        if commits:
            self._refuse_unless_fits(commits[0])

    def _unfit(self) -> Iterator[Problem]:
        if not self._root.is_dir():
            what = f"the checkpoint directory {self._root} does not exist"
            yield Problem(what, remedy=f"Create it with `mkdir -p {self._root}`, or correct the path")
        if self._gang_wished and self._author.rank is None:
            what = "nothing says which of the pods that write a checkpoint together this one is"
            remedy = "Use an Indexed Job or a JobSet, or leave out podferry.io/world"
            yield Problem(what, f"world is {self._author.world}", remedy)

    def _refuse_unless_fits(self, commit: Commit) -> None:
        free = measure(self._root).volume_bytes
        if bytes_to_restore(commit, self._root, self._aside, self._author.rank) > free:
            measured = f"{commit.name} has {format_bytes(commit.bytes)}, {format_bytes(free)} are free"
            remedy = "Raise checkpoint-size, or set restore to never"
            raise Refused.of("the checkpoint to restore is larger than its volume", measured, remedy)

    async def restore(self) -> None:
        """Wait for an agent before this one that still drains, then bring back what training resumes from.

        Raises:
            Refused, NotFound, TemporaryError: See `podferry.sidecar.checkpoint.restore.restore.restore`.
        """
        assert self.handover is not None  # noqa: S101 - `plan` comes first
        await self.handover.wait()
        if self._gang is not None:
            await self._gang.commit_before_start()
            await self._gang.announce()
        if self._source is None:
            return
        found = await restore(self._source, self._root, self._aside, self._author.rank)
        if found is not None:
            commit, seconds = found
            self.restored = restored_status(commit, seconds)
            self._restored_names = [file.name for file in commit.files]
            log.info("restored", name=commit.name, sequence=commit.sequence, bytes=commit.bytes)

    async def ferry(self, timings: Durations) -> CheckpointPipeline:
        """What makes new checkpoints durable from now on."""
        settings, committer, meter = self._config.tuning.checkpoint, self.connect(), UploadCounters()
        if self._gang is not None:
            await self._gang.announce()  # a worker that starts again finds its pod's announcement
        # A worker that starts again needs no answer here: its pod trains, and its store may be away.
        newest = None
        if self._journal.agent.gate is None:
            newest = await anext(committer.reader.newest_first(), None)
        ledgers = UploadJournals(self._config.directories.control / "uploads")
        limit = self._spec.upload_limit
        gear = Dependencies(
            self._detector(),
            HardlinkHolds(self._pins, self._notes(), max(self._journal.checkpoints.sequences, default=0)),
            Uploader(committer, ledgers, settings, limit, meter),
            committer,
            self._journal,
            timings,
            meter,
            self._gang,
            self._retention(committer),
        )
        self._journal.checkpoints.restored = self.restored
        ferry = CheckpointPipeline(gear, self._state, settings, self._spec.keep_local)
        ferry.mark_restored(self._restored_names)
        if newest is not None:
            ferry.leave_out_older(newest)
        return ferry

    def _detector(self) -> Detector:
        settings = self._config.tuning
        self._watch = open_watch(self._root, settings.checkpoint, polling=settings.polling)
        return Detector(
            self._root,
            self._watch,
            settings.checkpoint,
            completion=self._spec.complete,
            # DCP's coordinator is the first rank: it alone has what is written last.
            gang=self._gang_wished and self._author.rank != 0,
        )

    def _retention(self, committer: Committer) -> Retention | None:
        keep, restored = self._spec.keep_remote, self.restored
        # Of several ranks that commit together one is enough.
        if keep is None or (self._gang_wished and self._author.rank):
            return None
        protect = [restored.checkpoint] if restored is not None else []
        return Retention(committer.reader, keep, protect)

    def _notes(self) -> Path | None:
        """In a pod beside the journal. Elsewhere pins outlive the agent, and so must their notes."""
        return self._config.directories.control / "pins" if self._config.in_pod else None

    async def close(self) -> None:
        """Give back the connections and the watch."""
        if self._watch is not None:
            self._watch.close()
        if self._committer is not None:
            await self._committer.reader.store.destination.close()

    def summary(self) -> str:
        """One line for people."""
        place = self._spec.parsed / self._lineage
        if self.restored is None:
            return f"checkpoints: to {place}; training starts anew"
        found = f"resuming from {self.restored.name} (commit {self.restored.sequence})"
        return f"checkpoints: to {place}; {found}; set restore to never to start anew"


def _now() -> datetime:
    return datetime.now(UTC)
