"""The promise: a checkpoint is committed and complete, or does not exist. The rig's store checks it."""

import asyncio
import os
import pickle
import shutil
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import xxhash
from structlog.testing import capture_logs

from podferry.contract.errors import Unavailable
from podferry.contract.status import newest_durable
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.pipeline.restore_plan import Restored
from podferry.storage.local.store import LocalStore
from podferry.storage.memory.store import Fault
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[4]
STUCK_WORKER = "tests.sidecar.checkpoint.pipeline.stuck_worker"
ONE, TWO = b"1" * 5000, b"2" * 5000


class Death(BaseException):
    """Ends a worker as if killed: nothing may catch it."""


async def test_files_become_commits_in_order(any_rig):
    async with any_rig.running() as pipeline:
        any_rig.write("epoch-1.pt", b"one")
        await any_rig.committed(1)
        any_rig.write("epoch-2/a.bin", b"a")
        any_rig.write("epoch-2/deep/er/b.bin", b"b")
        assert (await pipeline.flush(PATIENCE)).durable
        await any_rig.until(lambda: pipeline._status.pending == [])
    first, second = any_rig.store.commits()
    assert (first.name, first.sequence, first.step) == ("epoch-1", 1, 1)
    assert any_rig.store.bytes_of(second) == {"epoch-2/a.bin": b"a", "epoch-2/deep/er/b.bin": b"b"}
    assert list(any_rig.holds.iterdir()) == []


async def test_an_older_save_under_another_name_does_not_become_the_newest(any_rig):
    async with any_rig.running() as pipeline:
        for step in (4, 5, 6):
            any_rig.write(f"step-{step}.pt", b"%d" % step)
            await any_rig.committed(step - 3)
        (any_rig.root / "step-5.pt").rename(any_rig.root / "archived-5.pt")
        shutil.copy2(any_rig.root / "step-4.pt", any_rig.root / "best.pt")
        commits = await any_rig.committed(5)
        assert (await pipeline.flush(PATIENCE)).last.name == "step-6"
        any_rig.write("step-7.pt", b"7")
        assert (await pipeline.flush(PATIENCE)).last.name == "step-7"
    assert {one.name for one in commits if one.late} == {"archived-5", "best"}
    assert newest_durable(pipeline._status.durable).name == "step-7"


async def test_a_directory_renamed_into_place_is_complete(any_rig):
    (any_rig.base / "aside").mkdir()
    (any_rig.base / "aside" / "w.bin").write_bytes(ONE)
    async with any_rig.running() as pipeline:
        (any_rig.base / "aside").rename(any_rig.root / "step-5")
        await any_rig.committed(1)
        assert (await pipeline.flush(PATIENCE)).last.name == "step-5"


async def test_an_overwrite_in_place_during_the_upload_is_never_committed_torn(any_rig):
    any_rig.store.gated = "last.bin"
    async with any_rig.running():
        any_rig.write("last.bin", ONE)
        await any_rig.until(any_rig.store.reached.is_set)
        any_rig.write("last.bin", TWO)
        any_rig.store.gated = ""
        any_rig.store.go.set()
        (commit,) = await any_rig.committed(1)
    assert any_rig.store.bytes_of(commit) == {"last.bin": TWO}


async def test_an_overwrite_that_keeps_size_and_time_is_noticed_by_the_fingerprint(any_rig):
    any_rig.store.gated = "last.bin"
    async with any_rig.running():
        path = any_rig.write("last.bin", ONE)
        await any_rig.until(any_rig.store.reached.is_set)
        before = path.stat()
        path.write_bytes(TWO)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        any_rig.store.gated = ""
        any_rig.store.go.set()
        (commit,) = await any_rig.committed(1)
    assert any_rig.store.bytes_of(commit) == {"last.bin": TWO}


@pytest.mark.parametrize("removed", [True, False])
async def test_what_is_held_survives_removal_and_replacement(any_rig, removed):
    any_rig.store.gated = "last.bin"
    async with any_rig.running() as pipeline:
        path = any_rig.write("last.bin", ONE)
        await any_rig.until(any_rig.store.reached.is_set)
        path.unlink() if removed else any_rig.replace("last.bin", TWO)
        any_rig.store.gated = ""
        any_rig.store.go.set()
        await any_rig.committed(1 if removed else 2)
        assert (await pipeline.flush(PATIENCE)).durable
    contents = [any_rig.store.bytes_of(commit)["last.bin"] for commit in any_rig.store.commits()]
    assert contents == ([ONE] if removed else [ONE, TWO])


async def test_a_death_between_data_and_commit_leaves_nothing_to_restore(any_rig):
    any_rig.faults.append(Fault("write", "*/commits/*", error=Death()))

    pipeline = any_rig.pipeline()
    any_rig.write("epoch-1.bin", ONE)
    with pytest.raises(BaseExceptionGroup) as caught:
        await pipeline.run()
    pipeline._detector._watch.close()
    assert caught.group_contains(Death)
    assert ONE in any_rig.content.objects.values()
    assert await any_rig.restored() is None
    shutil.rmtree(any_rig.root)  # the trainer has rotated it away: only the hold has it
    any_rig.root.mkdir()
    async with any_rig.running():
        await any_rig.committed(1)
    assert await any_rig.restored() == ("epoch-1", {"epoch-1.bin": ONE})


async def test_a_worker_that_is_killed_between_data_and_commit_is_completed_by_the_next(any_rig):
    (any_rig.base / "remote").mkdir()
    path = any_rig.write("epoch-1.bin", ONE)
    mode = "polling" if any_rig.polling else "inotify"
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", STUCK_WORKER, any_rig.base, mode, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    async with asyncio.timeout(PATIENCE):
        while (line := await worker.stdout.readline()) != b"at the commit\n":
            assert line, "the worker ended before"
    worker.kill()
    assert await worker.wait() == -signal.SIGKILL
    store = LocalStore(parse_uri(f"file://{any_rig.base}/remote"))
    reader = CommitReader(LineageStore(store, "run"))
    assert [data.read_bytes() for data in (any_rig.base / "remote").rglob("epoch-1.bin")] == [ONE]
    assert await reader.sequences() == []
    path.unlink()
    async with any_rig.running(store) as pipeline:
        assert (await pipeline.flush(PATIENCE)).last.name == "epoch-1"
    assert await reader.missing_objects(await reader.read(1)) == []


async def test_an_overwrite_in_place_while_no_worker_ran_is_not_committed_mixed(any_rig):
    any_rig.faults.append(Fault("write", "*/commits/*", error=Death()))
    any_rig.write("last/a.bin", ONE)
    any_rig.write("last/b.bin", ONE)
    pipeline = any_rig.pipeline()
    with pytest.raises(BaseExceptionGroup):
        await pipeline.run()
    pipeline._detector._watch.close()
    any_rig.write("last/a.bin", TWO)  # the trainer is half-way through its next one
    any_rig.store.gated = "last/"
    async with any_rig.running() as pipeline:
        assert pipeline._queue.versions() == []
        any_rig.store.gated = ""
        any_rig.write("last/b.bin", TWO)
        (commit,) = await any_rig.committed(1)
    assert any_rig.store.bytes_of(commit) == {"last/a.bin": TWO, "last/b.bin": TWO}


async def test_a_lost_answer_to_the_commit_makes_one_commit(any_rig):
    lost = Unavailable.of("the connection was reset")
    any_rig.faults.append(Fault("write", "*/commits/*", times=1, error=lost, after=True))
    any_rig.faults.append(Fault("write", "*/commits/*", times=7, error=lost))
    async with any_rig.running() as pipeline:
        any_rig.write("epoch-1.bin", ONE)
        answer = await pipeline.flush(PATIENCE)
    assert (answer.durable, answer.last.sequence) == (True, 1)
    assert len(any_rig.store.commits()) == 1


async def test_old_checkpoints_are_not_committed_again_after_newer_ones(any_rig):
    async with any_rig.running():
        for step in (1, 2, 3):
            any_rig.write(f"epoch-{step}.bin", b"%d" % step)
            await any_rig.committed(step)
    shutil.rmtree(any_rig.control)  # another pod over the same directory
    async with any_rig.running() as pipeline:
        await any_rig.until(lambda: len(pipeline._status.durable) == 3)
    await any_rig.committed(3)
    assert (await any_rig.restored())[0] == "epoch-3"


async def test_a_checkpoint_that_is_being_removed_is_not_committed_again(any_rig):
    async with any_rig.running() as pipeline:
        for name in "abc":
            any_rig.write(f"epoch-1/{name}.bin", name.encode())
        await any_rig.committed(1)
        (any_rig.root / "epoch-1" / "a.bin").unlink()
        assert (await pipeline.flush(PATIENCE)).durable
        any_rig.write("epoch-2.bin", b"next")
        await any_rig.until(lambda: pipeline._status.durable[-1].name == "epoch-2")
    assert [commit.name for commit in any_rig.store.commits()] == ["epoch-1", "epoch-2"]


async def test_restored_files_are_not_uploaded_again(any_rig):
    any_rig.write("epoch-1.bin", ONE)
    pipeline = any_rig.pipeline()
    pipeline.mark_restored(Restored(fingerprints={"epoch-1.bin": xxhash.xxh3_128_hexdigest(ONE)}))
    pipeline._detector._watch.close()
    async with any_rig.running() as pipeline:
        assert (await pipeline.flush(PATIENCE)).durable
        any_rig.write("epoch-2.bin", TWO)
        await any_rig.committed(1)
    assert any_rig.store.commits()[0].name == "epoch-2"


async def test_a_checkpoint_that_cannot_be_held_stops_no_other(rig, monkeypatch):
    link = os.link

    def refuse(source, target, **options):
        if "epoch-1" in str(source):
            raise PermissionError(1, "Operation not permitted")
        link(source, target, **options)

    def forbidden(source, target):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(shutil, "copyfile", forbidden)
    async with rig.running() as pipeline:
        rig.write("epoch-1.bin", ONE)
        rig.write("epoch-2.bin", TWO)
        answer = await pipeline.flush(PATIENCE, final=True)
    assert (answer.hopeless, answer.pending) == (True, ("epoch-1",))
    assert "Permission denied" in answer.problems[0].measured
    assert [commit.name for commit in rig.store.commits()] == ["epoch-2"]


async def test_without_hard_links_a_copy_is_committed_once(rig, monkeypatch):
    def refuse(source, target, **options):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    async with rig.running() as pipeline:
        rig.write("epoch-1.bin", ONE)
        await rig.committed(1)
        assert (await pipeline.flush(PATIENCE)).durable
        assert (await pipeline.flush(PATIENCE)).durable
        assert len(pipeline._status.durable) == 1


async def test_under_pressure_only_older_durable_checkpoints_are_freed(any_rig):
    any_rig.settings = msgspec.structs.replace(any_rig.settings, eviction_threshold=0.0)
    any_rig.write("foreign.txt.tmp", b"foreign")
    async with any_rig.running() as pipeline:
        for number in (1, 2, 3):
            any_rig.replace("last.pkl", pickle.dumps(b"%d" % number * 5000))
            any_rig.write(f"epoch-{number}.pkl", pickle.dumps(b"e%d" % number * 5000))
            await any_rig.until(lambda n=2 * number: len(pipeline._status.durable) >= n)
        any_rig.faults.append(Fault("write", times=1000, error=Unavailable.of("no route")))
        any_rig.write("epoch-4.pkl", pickle.dumps(b"e4" * 5000))
        await any_rig.until(lambda: pipeline._status.problems)
    lying = {path.name for path in any_rig.root.iterdir()}
    newest = any_rig.store.commits()[-1].files[0].name
    assert lying == {newest, "epoch-4.pkl", "foreign.txt.tmp"}


async def test_a_full_volume_is_logged_once_and_shown_in_the_status(rig, monkeypatch):
    usage = SimpleNamespace(used=100, free=0, total=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda root: usage)
    rig.settings = msgspec.structs.replace(rig.settings, full_threshold=0.99)
    with capture_logs() as logs:
        async with rig.running() as pipeline:
            rig.write("step-1.bin", b"one")
            await rig.committed(1)
            await rig.until(lambda: pipeline._status.problems)
            (problem,) = pipeline._status.problems
            assert problem.what == "the checkpoint volume is full"
            usage.used, usage.free = 50, 50
            rig.write("step-2.bin", b"two")
            await rig.committed(2)
            await rig.until(lambda: pipeline._status.problems == [])
    assert [one["log_level"] for one in logs if "is full" in one["event"]] == ["warning"]


async def test_a_name_that_is_written_again_is_as_new_as_its_last_version(rig):
    rig.settings = msgspec.structs.replace(rig.settings, eviction_threshold=0.0)
    async with rig.running() as pipeline:
        for done, name in enumerate(("last", "epoch-1", "last"), start=1):
            rig.replace(f"{name}.bin", b"%d" % done * 5000)
            await rig.until(lambda n=done: len(pipeline._status.durable) == n)
    assert [path.name for path in rig.root.iterdir()] == ["last.bin"]


async def test_a_pod_that_only_restores_uploads_nothing_and_names_what_it_wrote(any_rig):
    """Two pods without `world`: the second one neither commits nor fences, and says what to do."""
    async with any_rig.running():
        any_rig.write("step-1.bin", ONE)
        await any_rig.committed(1)
    before = dict(any_rig.content.objects)
    any_rig.root, any_rig.control = any_rig.base / "second", any_rig.base / "second-control"
    any_rig.root.mkdir()
    any_rig.read_only = True
    with capture_logs() as logs:
        async with any_rig.running() as pipeline:
            any_rig.write("step-2.bin", TWO)
            await any_rig.until(lambda: pipeline._status.problems)
            answer = await pipeline.flush(PATIENCE)
            final = await pipeline.flush(PATIENCE, final=True, ending=True)
    assert any_rig.content.objects == before
    for found in (answer, final):
        assert (found.durable, found.hopeless, found.pending) == (False, True, ("step-2",))
        assert "set podferry.io/world" in str(found.problems[0])
    assert not pipeline._status.fenced
    assert [log["name"] for log in logs if log["log_level"] == "warning"] == ["step-2"]


async def test_what_another_pod_writes_does_not_fill_the_volume(any_rig):
    """Under pressure only the newest checkpoint stays; each has been named."""
    any_rig.settings = msgspec.structs.replace(any_rig.settings, eviction_threshold=0.0)
    any_rig.read_only = True
    with capture_logs() as logs:
        async with any_rig.running() as pipeline:
            for number in (1, 2, 3):
                any_rig.write(f"step-{number}.pkl", pickle.dumps(b"%d" % number * 5000))
                await any_rig.until(lambda n=number: f"step-{n}" in str(pipeline._status.problems))
            await any_rig.until(lambda: len(list(any_rig.root.iterdir())) == 1)
            await any_rig.until(lambda: pipeline._status.pending == ["step-3"])
    assert [path.name for path in any_rig.root.iterdir()] == ["step-3.pkl"]
    named = [log["name"] for log in logs if log["log_level"] == "warning"]
    assert named == ["step-1", "step-2", "step-3"]
