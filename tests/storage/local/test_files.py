import os
from types import SimpleNamespace

import pytest

from podferry.contract.errors import BucketNotFound, Corrupt, InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.local.files import (
    check_root_directory,
    is_of_juicefs,
    make_parents,
    read_exactly,
    remove_file,
    write_all,
    write_at,
)

DATA = bytes(range(256)) * 8


@pytest.fixture
def descriptor(tmp_path):
    """An empty file, open for reading and writing."""
    opened = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield opened
    os.close(opened)


@pytest.fixture
def partial(monkeypatch):
    """The system reads and writes at most seven bytes at a time."""
    write, pwrite, preadv = os.write, os.pwrite, os.preadv
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    monkeypatch.setattr(os, "pwrite", lambda file, data, start: pwrite(file, data[:7], start))
    monkeypatch.setattr(os, "preadv", lambda file, views, start: preadv(file, [views[0][:7]], start))


def test_partial_reads_and_writes_are_continued(descriptor, partial):
    write_all(descriptor, DATA)
    write_at(descriptor, memoryview(b"0123456789"), 1000)
    found = bytearray(len(DATA) - 100)
    read_exactly(descriptor, memoryview(found), 100, "a")
    assert found == DATA[100:1000] + b"0123456789" + DATA[1010:]


def test_a_file_that_became_shorter_is_corrupt(descriptor):
    write_all(descriptor, b"0123456789")
    with pytest.raises(Corrupt, match=r"a became shorter .*2 of 4 bytes"):
        read_exactly(descriptor, memoryview(bytearray(4)), 8, "a")


def test_the_root_directory_must_be_an_existing_directory(tmp_path):
    uri = parse_uri("/disk/run")
    check_root_directory(uri, tmp_path)
    with pytest.raises(BucketNotFound, match=r"there is no directory .*/disk"):
        check_root_directory(uri, tmp_path / "disk")
    (tmp_path / "disk").touch()
    with pytest.raises(BucketNotFound, match="/disk is a file, not a directory"):
        check_root_directory(uri, tmp_path / "disk")


def test_directories_are_created_above_a_file_only(tmp_path):
    location = StoreLocation(parse_uri(str(tmp_path)))
    make_parents(location, "a/b/c", tmp_path / "a/b/c")
    assert (tmp_path / "a/b").is_dir()
    with pytest.raises(InvalidSpec, match="/a/b is a directory, not a file"):
        make_parents(location, "a/b", tmp_path / "a/b")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidSpec, match="/file is a file, not a directory"):
        make_parents(location, "file/b/c", tmp_path / "file/b/c")


def test_a_missing_file_is_removed_already(tmp_path):
    (tmp_path / "file").touch()
    for path in ("file", "file", "no/such/file"):
        remove_file(tmp_path / path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "inode", "expected"),
    [
        (".stats", 0x7FFFFFFF00000003, True),
        (".trash", 0x7FFFFFFF10000000, True),
        (".stats", 8, False),
        ("stats", 0x7FFFFFFF00000003, False),
    ],
)
def test_files_of_juicefs_are_known_by_name_and_inode(name, inode, expected):
    """The numbers are those of a mount; tests/servers/test_juicefs.py lists one."""
    assert is_of_juicefs(SimpleNamespace(name=name, inode=lambda: inode)) is expected
