import errno
import os

import pytest

from podferry.contract.errors import Corrupt, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.local.server_copy import copy_bytes
from podferry.storage.local.store import LocalStore


@pytest.fixture
def store(tmp_path):
    return LocalStore(parse_uri(str(tmp_path)) / "root")


def refuse(*_):
    raise OSError(errno.EXDEV, "another file system")


def refuse_later(done):
    """Copies once, then refuses."""

    def copy(source, target, count):
        if done:
            refuse()
        done.append(os.write(target, os.read(source, 1000)))
        return done[0]

    return copy


@pytest.mark.parametrize("call", [refuse, refuse_later([])])
def test_bytes_are_read_and_written_if_the_kernel_cannot_copy(tmp_path, monkeypatch, call):
    data = os.urandom(3 << 20)
    (tmp_path / "a").write_bytes(data)
    monkeypatch.setattr(os, "copy_file_range", call)
    with (tmp_path / "a").open("rb", buffering=0) as source, (tmp_path / "b").open("wb") as target:
        copy_bytes(source.fileno(), target.fileno())
    assert (tmp_path / "b").read_bytes() == data


async def test_a_copy_is_a_file_of_its_own(store, tmp_path):
    await store.write("a", b"1234")
    await store.server_copy.copy("a", "d/b")
    assert (tmp_path / "root/a").stat().st_ino != (tmp_path / "root/d/b").stat().st_ino


async def test_a_copy_that_ends_early_is_noticed(store, monkeypatch):
    await store.write("a", b"1234")
    monkeypatch.setattr(os, "copy_file_range", lambda *_: 0)
    with pytest.raises(Corrupt, match="0 bytes, the source has 4"):
        await store.server_copy.copy("a", "b")


async def test_a_full_disk_leaves_the_old_file_and_no_temporary_one(store, tmp_path, monkeypatch):
    await store.write("a", b"1234")
    await store.write("b", b"old")

    def full(*_):
        raise OSError(errno.EIO, "the device is broken")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable):
        await store.server_copy.copy("a", "b")
    assert sorted(path.name for path in (tmp_path / "root").iterdir()) == ["a", "b"]
    assert (tmp_path / "root/b").read_bytes() == b"old"
