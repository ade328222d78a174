import asyncio
import errno
import os
import threading

import pytest

from podferry.contract.errors import BucketNotFound, Corrupt, InvalidSpec, NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.local import multipart as local_parts
from podferry.storage.local.store import LocalStore
from podferry.storage.object_names import is_temporary
from tests.support.patience import PATIENCE

PART = 1000
DATA = [b"a" * PART, b"b" * PART, b"c" * 10]


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


@pytest.fixture
def store(root):
    return LocalStore(parse_uri(str(root)))


async def sent(store, name="d/big"):
    upload = await store.multipart.begin(name, PART)
    return upload, [await store.multipart.send(name, upload, i + 1, data) for i, data in enumerate(DATA)]


def files(root):
    return [path for path in root.rglob("*") if path.is_file()]


async def test_parts_are_in_one_hidden_file_next_to_the_target(store, root):
    upload, receipts = await sent(store)
    (hidden,) = files(root)
    assert hidden.parent == root / "d"
    assert is_temporary(hidden.name)
    assert hidden.read_bytes() == b"".join(DATA)
    await store.multipart.complete("d/big", upload, receipts)
    assert files(root) == [root / "d" / "big"]


async def test_an_aborted_upload_leaves_no_file(store, root):
    upload, _ = await sent(store)
    await store.multipart.abort("d/big", upload)
    assert files(root) == []


async def test_send_returns_when_the_part_is_on_disk(store, monkeypatch):
    synced = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(os.fstat(file).st_size), sync(file)))
    upload = await store.multipart.begin("d/big", PART)
    await store.multipart.send("d/big", upload, 2, DATA[1])
    assert synced == [2 * PART]


async def test_the_name_survives_a_crash_of_the_machine(store, root, monkeypatch):
    upload, receipts = await sent(store)
    synced = []
    monkeypatch.setattr(local_parts, "sync_directory", synced.append)
    await store.multipart.complete("d/big", upload, receipts)
    await store.multipart.complete("d/big", upload, receipts)
    assert synced == [root / "d"] * 2  # the one that came again may be the one that is heard


async def test_a_file_of_the_wrong_size_is_not_published(store, root):
    upload, receipts = await sent(store)
    (hidden,) = files(root)
    os.truncate(hidden, 2 * PART)
    with pytest.raises(Corrupt, match="2000 bytes on disk; 2010 were sent"):
        await store.multipart.complete("d/big", upload, receipts)
    assert not (root / "d" / "big").exists()


async def test_an_upload_without_its_file_is_unknown(store, root):
    upload, receipts = await sent(store)
    (hidden,) = files(root)
    hidden.unlink()
    with pytest.raises(NotFound, match="no longer knows"):
        await store.multipart.send("d/big", upload, 1, DATA[0])
    with pytest.raises(NotFound, match="no longer knows"):
        await store.multipart.complete("d/big", upload, receipts)
    assert files(root) == []


async def test_an_existing_file_counts_only_with_the_same_bytes(store, root):
    upload, receipts = await sent(store)
    await store.multipart.complete("d/big", upload, receipts)
    (root / "d" / "big").write_bytes(b"".join(DATA[:2]) + b"C" * 10)
    with pytest.raises(NotFound):
        await store.multipart.complete("d/big", upload, receipts)


async def test_an_upload_is_a_file_and_not_a_directory(store, root):
    (root / "d").mkdir(parents=True)
    with pytest.raises(InvalidSpec, match="is a directory, not a file"):
        await store.multipart.begin("d", PART)
    upload, receipts = await sent(store)
    (root / "d" / "big").mkdir()
    with pytest.raises(InvalidSpec, match="is a directory, not a file"):
        await store.multipart.complete("d/big", upload, receipts)


async def test_a_missing_top_directory_is_a_missing_bucket():
    parts = LocalStore(parse_uri("/no-such-mount/data")).multipart
    upload = "0123456789abcdef-1000"
    for call in (parts.begin("a", PART), parts.send("a", upload, 1, b"x"), parts.abort("a", upload)):
        with pytest.raises(BucketNotFound, match="/no-such-mount"):
            await call


async def test_a_full_disk_is_reported_and_the_part_can_be_sent_again(store, root, monkeypatch):
    upload = await store.multipart.begin("d/big", PART)

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        with pytest.raises(Unavailable, match=r"no space left at .*/d/big"):
            await store.multipart.send("d/big", upload, 1, DATA[0])
    receipt = await store.multipart.send("d/big", upload, 1, DATA[0])
    await store.multipart.complete("d/big", upload, [receipt])
    assert (root / "d" / "big").read_bytes() == DATA[0]


async def test_a_cancelled_part_does_not_end_before_its_thread(store, monkeypatch):
    upload = await store.multipart.begin("d/big", PART)
    loop, reached, go, ended = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), []
    write = os.pwrite

    def slowly(*args):
        loop.call_soon_threadsafe(reached.set)
        assert go.wait(PATIENCE)
        ended.append(True)
        return write(*args)

    monkeypatch.setattr(os, "pwrite", slowly)
    task = asyncio.create_task(store.multipart.send("d/big", upload, 1, DATA[0]))
    await reached.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended
