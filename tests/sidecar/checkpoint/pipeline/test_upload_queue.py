from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from podferry.contract.status import CheckpointStatus
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import VersionState
from podferry.sidecar.checkpoint.pipeline.upload_queue import UploadQueue
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import Journal
from tests.support.manual_clock import Clock

QueueOf = Callable[..., tuple[UploadQueue, VersionRegistry]]


def held(number: int, name: str = "") -> HeldCheckpoint:
    candidate = Candidate(name or f"step-{number}", ((f"{name or number}.pt", FileIdentity(number, 1, 1)),))
    note = Path(f"/notes/{number}")
    return HeldCheckpoint(candidate, candidate.files, Path(f"/pins/{number}/files"), 1.0, note)


@pytest.fixture
def queue_of(tmp_path: Path) -> QueueOf:
    """A queue of what an earlier worker held."""

    def make(holds: Iterable[HeldCheckpoint]) -> tuple[UploadQueue, VersionRegistry]:
        status = CheckpointStatus("memory://b", "/seen", "run")
        registry = VersionRegistry(Journal(tmp_path), status, holds, Durations(), lambda: None)
        return UploadQueue(registry), registry

    return make


def numbers(queue: UploadQueue) -> list[int]:
    return [version.number for version in queue.versions()]


def add(queue: UploadQueue, registry: VersionRegistry, hold: HeldCheckpoint) -> list[int]:
    """Detect and queue a version; returns the numbers of those that it replaced."""
    (version,) = registry.detect([hold.candidate], [])
    return [older.number for older in queue.add(version, hold)]


@pytest.mark.parametrize(("newest_first", "order"), [(False, [1, 2, 3]), (True, [3, 2, 1])])
async def test_the_order(queue_of: QueueOf, newest_first: bool, order: list[int]) -> None:
    queue, _ = queue_of(map(held, (3, 1, 2)))
    queue.newest_first = newest_first
    assert numbers(queue) == order
    taken = []
    for _ in order:
        taken.append((await queue.take()).number)
        queue.done()
    assert taken == order


async def test_a_newer_version_replaces_one_that_waits_but_not_one_that_is_being_sent(
    queue_of: QueueOf,
) -> None:
    queue, registry = queue_of([held(1, "last")])
    sending = await queue.take()
    assert add(queue, registry, held(2, "last")) == []
    assert add(queue, registry, held(3, "last")) == [2]
    assert numbers(queue) == [1, 3]
    assert dict(registry.settled()["last"].files)["last.pt"].inode == 3
    registry.move(sending, VersionState.HELD)
    queue.done()
    assert numbers(queue) == [1, 3]
    assert sending.number == 1


async def test_only_a_newer_one_overtakes_and_only_at_the_end(queue_of: QueueOf) -> None:
    queue, registry = queue_of([held(1), held(2)])
    first = await queue.take()
    assert not queue.is_overtaken()
    queue.newest_first = True
    assert queue.is_overtaken()
    registry.move(first, VersionState.HELD)
    assert not queue.is_overtaken()
    queue.done()
    second = await queue.take()
    assert not queue.is_overtaken()
    assert queue.count_older(second) == 1


async def test_what_is_set_apart_is_due_after_a_pause_or_on_request_and_only_if_nothing_else_waits(
    queue_of: QueueOf,
) -> None:
    _, registry = queue_of(map(held, (1, 2, 3)))
    clock = Clock()
    queue = UploadQueue(registry, set_apart_seconds=60.0, monotonic=clock)
    first = await queue.take()
    queue.done(VersionState.SET_APART)
    assert (queue.set_apart(), queue.is_due(first)) == ([first], False)
    assert (numbers(queue), queue.count_older(queue.versions()[-1])) == ([2, 3], 1)
    clock.now += 60.0
    assert queue.is_due(first)
    assert (await queue.take()).number == 2
    queue.done(VersionState.SET_APART)
    assert (await queue.take()).number == 3
    queue.done(VersionState.SET_APART)
    assert await queue.take() is first
    queue.done(VersionState.SET_APART)
    assert not any(map(queue.is_due, queue.set_apart()))
    queue.newest_first = True
    queue.retry_set_apart()
    assert (await queue.take()).number == 3
