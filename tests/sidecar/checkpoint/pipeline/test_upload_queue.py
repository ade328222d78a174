from pathlib import Path

import pytest

from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.upload_queue import UploadQueue
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.runtime.file_identity import FileIdentity


def pinned(number: int, name: str = "") -> HeldCheckpoint:
    candidate = Candidate(name or f"step-{number}", ((f"{name or number}.pt", FileIdentity(number, 1, 1)),))
    return HeldCheckpoint(
        candidate, candidate.files, Path(f"/pins/{number}/files"), 1.0, Path(f"/notes/{number}")
    )


@pytest.mark.parametrize(("newest_first", "order"), [(False, [1, 2, 3]), (True, [3, 2, 1])])
async def test_the_order(newest_first: bool, order: list[int]) -> None:
    line = UploadQueue(map(pinned, (3, 1, 2)))
    line.newest_first = newest_first
    assert [held.number for held in line.held()] == order
    taken = []
    for _ in order:
        taken.append((await line.take()).number)
        line.done()
    assert taken == order


async def test_a_newer_version_takes_the_place_of_one_that_waits_but_not_of_one_on_its_way() -> None:
    line = UploadQueue([pinned(1, "last")])
    sending = await line.take()
    assert line.add(pinned(2, "last")) == []
    assert [held.number for held in line.add(pinned(3, "last"))] == [2]
    assert [held.number for held in line.held()] == [1, 3]
    assert line.waits("last")
    line.put_back()
    assert [held.number for held in line.held()] == [1, 3]
    assert sending.number == 1


async def test_only_a_newer_one_overtakes_and_only_at_the_end() -> None:
    line = UploadQueue([pinned(1), pinned(2)])
    await line.take()
    assert not line.overtaken()
    line.newest_first = True
    assert line.overtaken()
    line.put_back()
    await line.take()
    assert not line.overtaken()
    assert line.older_than(pinned(2)) == 1
