"""A rig for tests of checkpoints: a directory, a strict store in memory, and lives of a worker over them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podferry.contract.destination.commit import Commit
from podferry.contract.status import CheckpointStatus, Status
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.garbage_collector import GarbageCollector
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.commit.retention import Retention
from podferry.sidecar.checkpoint.detect.assessor import TrainerContext
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles
from podferry.sidecar.checkpoint.detect.watcher import open_watch
from podferry.sidecar.checkpoint.pipeline.dependencies import Dependencies
from podferry.sidecar.checkpoint.pipeline.pipeline import CheckpointPipeline
from podferry.sidecar.checkpoint.restore.choice import RestoreSource
from podferry.sidecar.checkpoint.restore.restore import restore
from podferry.sidecar.checkpoint.upload.hardlink_hold import HardlinkHolds, HeldCheckpoint
from podferry.sidecar.checkpoint.upload.upload_journal import UploadJournals
from podferry.sidecar.checkpoint.upload.uploader import Uploader
from podferry.sidecar.config.tuning import CheckpointSettings
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import Journal
from podferry.sidecar.state.upload_counters import UploadCounters
from podferry.storage.memory.store import Content, Fault, MemoryStore
from tests.support.patience import PATIENCE
from tests.support.strict_store import BASE, StrictStore

LINEAGE = "run"
NEVER_PRESSED = 2.0


class Shipper(Uploader):
    """An uploader that commits what it has sent."""

    async def upload(self, held: HeldCheckpoint) -> Commit:
        """Send and commit."""
        result = await self.send(held)
        commit = result.existing or await self._committer.commit(
            held.candidate.name, result.folder, result.files, check=lambda: self.recheck(result)
        )
        await self.forget(held)
        return commit


class Rig:
    """One pod's checkpoints; `running` is one life of its worker, which ends as if killed."""

    def __init__(self, base: Path, *, polling: bool) -> None:
        self.base, self.polling = base, polling
        self.root, self.holds, self.control = base / "files", base / "pins", base / "control"
        self.root.mkdir(exist_ok=True)
        self.content = Content()
        self.store = StrictStore(self.content)
        self.settings = CheckpointSettings(
            quiet_seconds=0.02,
            quiet_seconds_no_close=0.04,
            rescan_seconds=0.5,
            poll_seconds=0.01,
            part_bytes=1024,
            parts_in_flight=2,
            retry_seconds=0.01,
            set_apart_seconds=0.05,
            eviction_threshold=NEVER_PRESSED,
            full_threshold=NEVER_PRESSED,
        )
        self.keep_local = 1
        self.keep_remote: int | None = None
        self.read_only = False
        self.open_files: OpenFiles | None = None
        self.now: Callable[[], float] = time.time

    @property
    def faults(self) -> list[Fault]:
        """The faults that the store will have."""
        return self.content.faults

    def committer(self, writer: str = "one", store: MemoryStore | None = None) -> Committer:
        """A committer of its own."""
        reader = CommitReader(LineageStore(store or self.store, LINEAGE))
        return Committer(reader, AgentIdentity(writer), lambda: datetime.now(UTC))

    def collector(self) -> GarbageCollector:
        """A garbage collector of its own."""
        return GarbageCollector(CommitReader(LineageStore(self.store, LINEAGE)))

    def uploader(self, writer: str = "one", store: MemoryStore | None = None, **options: Any) -> Shipper:
        """An uploader of its own, as a restarted worker has."""
        journals = UploadJournals(self.control / "uploads")
        return Shipper(self.committer(writer, store), journals, self.settings, **options)

    def pipeline(self, store: Any = None) -> CheckpointPipeline:
        """A worker's pipeline over the rig's directories; needs a running loop."""
        status = CheckpointStatus(uri=BASE, path=str(self.root), lineage=LINEAGE)
        committer, counters, journal = self.committer(store=store), UploadCounters(), Journal(self.control)
        journal.agent.agent_id = "one"
        dependencies = Dependencies(
            Detector(
                self.root,
                open_watch(self.root, self.settings, polling=self.polling),
                self.settings,
                context=TrainerContext(open_files=self.open_files),
            ),
            HardlinkHolds(self.holds, after=journal.checkpoints.last_hold),
            self.uploader(store=store, counters=counters),
            committer,
            journal,
            Durations(),
            counters,
            retention=Retention(committer.reader, self.keep_remote) if self.keep_remote else None,
        )
        state = AgentState(Status(checkpoints=status))
        return CheckpointPipeline(
            dependencies,
            state,
            status,
            self.settings,
            self.keep_local,
            self.now,
            read_only=self.read_only,
        )

    @asynccontextmanager
    async def running(
        self, store: Any = None, pipeline: CheckpointPipeline | None = None
    ) -> AsyncIterator[CheckpointPipeline]:
        """A running pipeline, cancelled at the end; its own errors are raised here."""
        pipeline = pipeline or self.pipeline(store)
        task = asyncio.create_task(pipeline.run())
        try:
            yield pipeline
        finally:
            crashed = task.done()
            task.cancel()
            result = (await asyncio.gather(task, return_exceptions=True))[0]
            pipeline._detector._watch.close()
            if crashed and isinstance(result, BaseException):
                raise result

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, up to the deadline."""
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 - of files and threads, which set no event
                await asyncio.sleep(0.002)

    async def committed(self, count: int) -> list[Commit]:
        """The commits once there are `count`; more are an error."""
        await self.until(lambda: len(self.store.commits()) >= count)
        assert len(self.store.commits()) == count
        return self.store.commits()

    def write(self, name: str, data: bytes) -> Path:
        """A trainer's file, written in place and closed."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def replace(self, name: str, data: bytes) -> Path:
        """A trainer's file, written to a temporary file and renamed into place."""
        temporary = self.write(f".{name}", data)
        return temporary.replace(self.root / name)

    async def restored(self) -> tuple[str, dict[str, bytes]] | None:
        """What `restore: latest` would download to an empty directory: the name and the files' contents."""
        target = self.base / f"target-{len(list(self.base.iterdir()))}"
        target.mkdir()
        found = await restore(
            RestoreSource(CommitReader(LineageStore(self.store, LINEAGE)), required=False, sure_only=False),
            target,
            self.base / "restoring",
        )
        if found.commit is None:
            return None
        files = {str(p.relative_to(target)): p.read_bytes() for p in target.rglob("*") if p.is_file()}
        return found.commit.name, files
