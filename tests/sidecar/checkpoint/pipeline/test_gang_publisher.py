"""A rank's parts: what is not committed is never called durable, whatever the other ranks do meanwhile."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from podferry.contract.destination.commit import Commit, CommittedFile
from podferry.contract.status import CheckpointStatus, Status
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.gang.coordinator import GangCoordinator
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import VersionState
from podferry.sidecar.checkpoint.pipeline.gang_publisher import GangPublisher
from podferry.sidecar.checkpoint.pipeline.pipeline import CheckpointPipeline
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import Journal
from tests.support.patience import PATIENCE

BIG = 8 * 1024


def gang(rig, rank, writer):
    author = AgentIdentity(writer, 2, rank=rank)
    committer = Committer(CommitReader(LineageStore(rig.store, "run")), author, lambda: datetime.now(UTC))
    return GangCoordinator(committer, time.time)


@asynccontextmanager
async def rank_zero(rig):
    """The running pipeline of rank 0; the test plays another rank."""
    rig.settings = msgspec.structs.replace(rig.settings, join_poll_seconds=0.02)
    alone = rig.pipeline()
    own = gang(rig, 0, "one")
    await own.announce()
    status = CheckpointStatus(uri="memory://rig/base", path=str(rig.root), lineage="run")
    dependencies = replace(alone._dependencies, gang=own, committer=own._committer)
    state = AgentState(Status(checkpoints=status))
    pipeline = CheckpointPipeline(dependencies, state, status, rig.settings)
    work = asyncio.create_task(pipeline.run())
    try:
        yield pipeline
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        pipeline._detector._watch.close()


async def part(other, step):
    name = f"rank-1-{step}"
    held = CommittedFile(name, f"own-1/{name}", 1, "b".ljust(32, "0"))
    await other.publish(f"step-{step}", "own-1", (held,), time.time())


async def test_an_abandoned_part_is_not_called_durable(rig):
    rig.store.check = lambda before: None  # the other rank's files are made up
    other = gang(rig, 1, "w1")
    await other.announce()
    async with rank_zero(rig) as pipeline:
        await asyncio.sleep(0.1)
        rig.write("step-100.bin", b"1" * BIG)
        await rig.until(lambda: pipeline._dependencies.journal.checkpoints.published)
        again = gang(rig, 1, "w1-again")
        await again.announce()
        await rig.until(lambda: "step-100" in pipeline._dependencies.gang._abandoned)
        await asyncio.sleep(0.1)
        answer = await pipeline.flush(PATIENCE, final=True)
        assert (answer.durable, answer.hopeless, answer.pending) == (False, True, ("step-100",))
        assert "has restarted" in str(answer.problems[0])
        assert rig.store.commits() == []
        rig.write("step-110.bin", b"2" * BIG)
        await rig.until(lambda: "step-110" in pipeline._dependencies.journal.checkpoints.published)
        await part(again, 110)
        await rig.until(rig.store.commits)
        assert (await pipeline.flush(PATIENCE, final=True)).durable
        await rig.until(lambda: pipeline._status.problems == [])
    assert [commit.step for commit in rig.store.commits()] == [110]


class SlowGang:
    """Publishes parts in their order, each once `go` is set."""

    def __init__(self):
        self.published, self.go, self._lock = [], asyncio.Event(), asyncio.Lock()

    async def publish(self, name, folder, files, changed_at, doubts):
        async with self._lock:
            await self.go.wait()
            self.published.append(folder)


class Parts:
    """A publisher of parts of `step-5` and the registry behind it."""

    def __init__(self, tmp_path):
        self.gang, self.journal = SlowGang(), Journal(tmp_path)
        self.status = CheckpointStatus(uri="memory://rig/base", path="/seen", lineage="run")
        self.registry = VersionRegistry(self.journal, self.status, [], Durations(), lambda: None)
        self.publisher = GangPublisher(self.gang, self.registry, SimpleNamespace(), None)

    @property
    def published(self):
        return self.journal.checkpoints.published

    def sent(self, folder, size):
        """A version that was sent, and the result of sending it."""
        candidate = Candidate("step-5", (("step-5.bin", FileIdentity(1, size, size)),))
        hold = HeldCheckpoint(candidate, candidate.files, Path(f"/pins/{size}/files"), 1.0, Path("/note"))
        (version,) = self.registry.detect([candidate], [])
        self.registry.hold(version, hold)
        self.registry.move(version, VersionState.SENDING)
        self.registry.move(version, VersionState.SENT)
        files = (CommittedFile("step-5.bin", f"{folder}/step-5.bin", size, "0" * 32),)
        return version, SimpleNamespace(folder=folder, files=files)


@pytest.fixture
def parts(tmp_path):
    return Parts(tmp_path)


@pytest.mark.parametrize("first", ["the earlier worker's", "the trainer's"])
async def test_republishing_does_not_replace_a_newer_part(parts, first):
    parts.gang.go.set()
    await parts.publisher.publish(*parts.sent("old", 1))
    parts.gang.go.clear()
    newer = parts.sent("new", 2)
    again, new = parts.publisher._republish, lambda: parts.publisher.publish(*newer)
    order = (again, new) if first == "the earlier worker's" else (new, again)
    tasks = [asyncio.create_task(begin()) for begin in order]
    await asyncio.sleep(0.01)
    parts.gang.go.set()
    await asyncio.gather(*tasks)
    assert parts.gang.published[-1] == "new"
    assert parts.published["step-5"].folder == "new"


async def test_a_commit_of_another_version_makes_no_part_durable(parts):
    parts.gang.go.set()
    await parts.publisher.publish(*parts.sent("new", 2))
    _, old = parts.sent("old", 1)
    commit = Commit(1, 1, "run", "step-5-x", "step-5", 5, datetime.now(UTC), old.files, "w", 2)
    parts.publisher._record_commit(commit)
    assert (parts.status.durable, list(parts.published)) == ([], ["step-5"])
    new = parts.published["step-5"].sent
    parts.publisher._record_commit(msgspec.structs.replace(commit, files=new))
    assert (len(parts.status.durable), list(parts.published)) == (1, [])
