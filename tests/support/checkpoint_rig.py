"""A rig for tests of checkpoints: a directory, a strict store in memory, and lives of a worker over them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import xxhash

from podferry.contract.destination.commit import Commit, decode_commit
from podferry.contract.status import CheckpointStatus, Status
from podferry.contract.uri import parse_uri
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
from podferry.storage.memory.multipart import MemoryMultipart
from podferry.storage.memory.server_copy import MemoryServerCopy
from podferry.storage.memory.store import Content, Fault, MemoryStore
from podferry.storage.multipart import UploadedPart
from podferry.storage.server_copy import StoredObject
from podferry.storage.store import Body, WriteMode
from tests.support.patience import PATIENCE

LINEAGE = "run"
BASE = "memory://rig/base"
NEVER_PRESSED = 2.0


class StrictStore(MemoryStore):
    """A memory store that checks the promise at every write.

    Every commit in it lists objects that exist and are what it says, and none of these ever changes. If
    `gated` is part of a name, a write in chunks or parts stops after the first one until `go` is set.
    """

    def __init__(self, content: Content) -> None:
        super().__init__(parse_uri(BASE), content)
        self.multipart = StrictParts(self)
        self.server_copy = StrictCopy(self)
        self.gated = ""
        self.reached, self.go = threading.Event(), threading.Event()

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        before = dict(self.content.objects)
        if self.gated and self.gated in name and not isinstance(body, bytes):
            body = self._slowly(iter(body))
        try:
            await super().write(name, body, mode)
        finally:
            self.check(before)

    def _slowly(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        yield next(chunks)
        self.reached.set()
        assert self.go.wait(PATIENCE)
        yield from chunks

    def commits(self) -> list[Commit]:
        """All commits, oldest first."""
        keys = sorted(key for key in self.content.objects if "/commits/" in key)
        return [decode_commit(self.content.objects[key], key) for key in keys]

    def bytes_of(self, commit: Commit) -> dict[str, bytes]:
        """What a commit lists, by name."""
        start = f"base/{commit.lineage}"
        return {file.name: self.content.objects[f"{start}/{file.object}"] for file in commit.files}

    def check(self, before: dict[str, bytes]) -> None:
        """Check that all commits are complete, and that what they list has not changed."""
        for commit in self.commits():
            for file in commit.files:
                key = f"base/{commit.lineage}/{file.object}"
                data = self.content.objects[key]
                assert (len(data), xxhash.xxh3_128_hexdigest(data)) == (file.size, file.xxh128)
                assert before.get(key, data) == data


class StrictParts(MemoryMultipart):
    """Uploads in parts to a strict store."""

    def __init__(self, store: StrictStore) -> None:
        super().__init__(store.uri, store.content)
        self._store = store

    async def send(self, name: str, upload: str, number: int, data: bytes | memoryview) -> UploadedPart:
        if self._store.gated and self._store.gated in name and number > 1:
            self._store.reached.set()
            assert await asyncio.to_thread(self._store.go.wait, PATIENCE)
        return await super().send(name, upload, number, data)

    async def complete(self, name: str, upload: str, receipts: Sequence[UploadedPart]) -> None:
        before = dict(self._store.content.objects)
        try:
            await super().complete(name, upload, receipts)
        finally:
            self._store.check(before)


class StrictCopy(MemoryServerCopy):
    """Copies within a strict store."""

    def __init__(self, store: StrictStore) -> None:
        super().__init__(store.uri, store.content)
        self._store = store

    async def copy(self, source: str, target: str) -> StoredObject:
        before = dict(self._store.content.objects)
        try:
            return await super().copy(source, target)
        finally:
            self._store.check(before)


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
