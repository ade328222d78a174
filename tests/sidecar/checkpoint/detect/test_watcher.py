import asyncio
import os

import pytest
from structlog.testing import capture_logs

from podferry.sidecar.checkpoint.detect import watcher as watch
from podferry.sidecar.checkpoint.detect.watcher import InotifyWatch, Watch, open_watch
from podferry.sidecar.config.tuning import CheckpointSettings
from tests.support.patience import PATIENCE

NEVER = 3600.0
SLOW = CheckpointSettings(rescan_seconds=NEVER, poll_seconds=NEVER)


@pytest.fixture
async def both(request, tmp_path):
    found = open_watch(tmp_path, SLOW, polling=request.param)
    yield found
    found.close()


either = pytest.mark.parametrize("both", [False, True], indirect=True, ids=["inotify", "polling"])


@either
async def test_a_watch_can_be_woken_before_and_during_a_wait(both):
    async with asyncio.timeout(PATIENCE):
        both.wake()
        assert await both.wait(NEVER) == set()
        waiting = asyncio.create_task(both.wait(NEVER))
        await asyncio.sleep(0)
        both.wake()
        assert await waiting == set()


@either
async def test_a_wait_ends_by_itself(both):
    assert await both.wait(0.001) == set()


async def test_a_close_ends_the_wait(tmp_path):
    found = open_watch(tmp_path, SLOW, polling=False)
    assert isinstance(found, InotifyWatch)
    waiting = asyncio.create_task(found.wait(NEVER))
    await asyncio.sleep(0)
    (tmp_path / "w").write_bytes(b"1")
    async with asyncio.timeout(PATIENCE):
        assert await waiting == {tmp_path / "w"}
    found.close()


async def test_the_next_change_of_an_expected_file_ends_the_wait(tmp_path):
    (tmp_path / "w").write_bytes(b"1")
    found = open_watch(tmp_path, SLOW, polling=False)
    found.expect_change([tmp_path / "w"])
    waiting = asyncio.create_task(found.wait(NEVER))
    await asyncio.sleep(0)
    with (tmp_path / "w").open("wb"):
        async with asyncio.timeout(PATIENCE):
            assert await waiting == set()
        assert found.begun == {tmp_path / "w"}
    found.close()


@pytest.mark.parametrize("kind", ["inotify", "polling"])
async def test_a_wait_lasts_at_most_the_scan_interval(tmp_path, kind):
    found = open_watch(
        tmp_path, CheckpointSettings(rescan_seconds=0.001, poll_seconds=0.001), polling=kind == "polling"
    )
    async with asyncio.timeout(PATIENCE):
        await found.wait(NEVER)
    found.close()


async def test_unread_events_do_not_spin_the_loop(tmp_path):
    found = InotifyWatch(tmp_path, SLOW.rescan_seconds)
    (tmp_path / "w").write_bytes(b"1")
    await found._woken.wait()
    for _ in range(5):
        found._woken.clear()
        await asyncio.sleep(0)
        assert not found._woken.is_set()
    assert await found.wait(0.001) == {tmp_path / "w"}
    (tmp_path / "x").write_bytes(b"1")
    async with asyncio.timeout(PATIENCE):
        assert await found.wait(NEVER) == {tmp_path / "x"}
    found.close()


async def test_lost_events_are_logged_and_the_tree_is_watched_again(tmp_path):
    found = InotifyWatch(tmp_path, SLOW.rescan_seconds)
    (tmp_path / "new").mkdir()
    os.read(found._inotify.fd, 1 << 16)  # the event of its creation is lost
    found._inotify.read = lambda: (set(), True)
    found.wake()
    with capture_logs() as logs:
        await found.wait(NEVER)
    del found._inotify.read
    assert "lost events" in logs[0]["event"]
    (tmp_path / "new" / "w").write_bytes(b"1")
    async with asyncio.timeout(PATIENCE):
        assert await found.wait(NEVER) == {tmp_path / "new" / "w"}
    found.close()


async def test_a_directory_that_is_created_again_is_watched_soon(tmp_path, monkeypatch):
    """A trainer empties its output directory by removing it, and may take a while."""
    monkeypatch.setattr(watch, "AWAY_SECONDS", 0.001)
    root = tmp_path / "checkpoints"
    root.mkdir()
    found = open_watch(root, SLOW, polling=False)
    root.rmdir()
    async with asyncio.timeout(PATIENCE):
        while found._inotify.watches_root:
            await found.wait(NEVER)
        await found.wait(NEVER)
        root.mkdir()
        while not found._inotify.watches_root:
            await found.wait(NEVER)
        (root / "w").write_bytes(b"1")
        assert await found.wait(NEVER) == {root / "w"}
    found.close()


async def test_without_inotify_instances_it_polls_with_a_warning(tmp_path, monkeypatch):
    def exhausted(root):
        raise OSError(24, "inotify_init1: too many open files")

    monkeypatch.setattr(watch, "Inotify", exhausted)
    with capture_logs() as logs:
        found = open_watch(tmp_path, SLOW, polling=False)
    assert type(found) is Watch
    assert (logs[0]["log_level"], logs[0]["every_seconds"]) == ("warning", NEVER)
    assert "too many open files" in logs[0]["reason"]
