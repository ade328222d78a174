import ctypes
import os
import struct
from pathlib import Path

import pytest

from podferry.sidecar.checkpoint.detect import inotify
from podferry.sidecar.checkpoint.detect.inotify import (
    CLOSE_WRITE,
    CREATE,
    HEADER,
    IGNORED,
    ISDIR,
    Q_OVERFLOW,
    Inotify,
)


@pytest.fixture
def watched(tmp_path):
    (tmp_path / "root").mkdir()
    found = Inotify(tmp_path / "root")
    yield found
    found.close()


def event(number: int, mask: int, name: bytes = b"") -> bytes:
    padded = name + b"\0" * (-len(name) % 16)
    return HEADER.pack(number, mask, 0, len(padded)) + padded


def test_closes_and_moves_are_reported_and_opens_are_not(watched):
    (watched.root / "a").write_bytes(b"1")
    (watched.root / "b").touch()
    with (watched.root / "open").open("wb") as file:
        file.write(b"1")
        file.flush()
        (watched.root / "a").rename(watched.root / "c")
        closed, lost = watched.read()
    assert {path.name for path in closed} == {"a", "b", "c"}
    assert not lost
    assert watched.read() == ({watched.root / "open"}, False)


def test_a_name_that_is_not_utf8_is_reported(watched):
    name = os.fsdecode(b"w\xff.bin")
    (watched.root / name).write_bytes(b"1")
    assert watched.read()[0] == {watched.root / name}


def test_nested_new_directories_are_all_watched(watched):
    deep = watched.root / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "early").write_bytes(b"1")  # before it is watched: only scans find it
    watched.read()
    (deep / "late").write_bytes(b"1")
    assert watched.read()[0] == {deep / "late"}


def test_children_of_a_moved_in_directory_count_as_closed(watched, tmp_path):
    (tmp_path / "staging" / "deep").mkdir(parents=True)
    (tmp_path / "staging" / "deep" / "w").write_bytes(b"1")
    (tmp_path / "staging").rename(watched.root / "in")
    assert watched.read()[0] == {watched.root / "in" / "deep" / "w"}
    (watched.root / "in" / "deep" / "x").write_bytes(b"1")
    assert watched.read()[0] == {watched.root / "in" / "deep" / "x"}


def test_a_renamed_directory_is_watched_under_its_new_name(watched):
    (watched.root / "old").mkdir()
    watched.read()
    (watched.root / "old").rename(watched.root / "new")
    watched.read()
    (watched.root / "new" / "w").write_bytes(b"1")
    assert watched.read()[0] == {watched.root / "new" / "w"}


def test_a_directory_deleted_again_is_skipped(watched):
    number = next(iter(watched._directories))
    data = event(number, CREATE | ISDIR, b"gone") + event(number, inotify.MOVED_TO | ISDIR, b"gone")
    closed = set()
    assert watched._parse(data, closed) is False
    assert closed == set()


def test_an_overflow_is_reported_and_earlier_events_are_kept(watched):
    number = next(iter(watched._directories))
    closed = set()
    data = event(number, CLOSE_WRITE, b"w") + event(-1, Q_OVERFLOW) + event(999, CLOSE_WRITE, b"x")
    assert watched._parse(data, closed) is True
    assert closed == {watched.root / "w"}


def test_a_recreated_root_is_watched_again(watched):
    watched.root.rmdir()
    watched.read()
    assert not watched.watches_root
    watched.refresh()
    assert not watched.watches_root
    watched.root.mkdir()
    watched.refresh()
    (watched.root / "w").write_bytes(b"1")
    assert (watched.watches_root, watched.read()[0]) == (True, {watched.root / "w"})


def test_events_of_a_watch_that_ended_are_ignored(watched):
    number = next(iter(watched._directories))
    closed = set()
    assert not watched._parse(event(number, IGNORED) + event(number, CLOSE_WRITE, b"w"), closed)
    assert closed == set()


class OutOfWatches:
    """A C library without watches left."""

    def inotify_add_watch(self, *_: object) -> int:
        ctypes.set_errno(28)
        return -1


def test_a_directory_that_cannot_be_watched_counts_as_lost_events(watched):
    watched._libc = OutOfWatches()
    (watched.root / "new").mkdir()
    assert watched.read() == (set(), True)
    watched.refresh()


def test_a_missing_root_is_watched_once_it_is_there(tmp_path):
    watched = Inotify(tmp_path / "missing")
    assert not watched.watches_root
    watched.root.mkdir()
    watched.refresh()
    (watched.root / "w").write_bytes(b"1")
    assert watched.read()[0] == {watched.root / "w"}
    watched.close()


def test_a_root_that_cannot_be_watched_is_an_error_and_releases_the_instance(tmp_path):
    (tmp_path / "file").touch()
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(NotADirectoryError):
        Inotify(tmp_path / "file")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_event_header_matches_the_manual():
    assert (HEADER.size, struct.calcsize("iIII")) == (16, 16)


def test_what_was_moved_in_is_distinguished_from_what_was_written(watched, tmp_path):
    (watched.root / "written").write_bytes(b"1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_bytes(b"1")
    (tmp_path / "folder").rename(watched.root / "step-1")
    (tmp_path / "file").write_bytes(b"1")
    (tmp_path / "file").rename(watched.root / "moved")
    (watched.root / "made").mkdir()
    watched.read()
    moved = {path.relative_to(watched.root).as_posix() for path in watched.moved}
    assert moved == {"step-1", "step-1/a", "moved"}
    assert watched.created == {watched.root / "made"}


def test_the_last_appearance_of_a_directory_counts(watched, tmp_path):
    (tmp_path / "folder").mkdir()
    (watched.root / "last").mkdir()
    (watched.root / "last").rmdir()
    (tmp_path / "folder").rename(watched.root / "last")
    watched.read()
    assert (watched.moved, watched.created) == ({watched.root / "last"}, set())
    (watched.root / "last").rmdir()
    (watched.root / "last").mkdir()
    watched.read()
    assert (watched.moved, watched.created) == (set(), {watched.root / "last"})


def test_the_next_change_of_a_watched_file_is_reported_once_until_its_close(watched):
    path = watched.root / "a"
    path.write_bytes(b"1")
    watched.read()
    watched.watch_file(path)
    with path.open("wb", buffering=0) as file:
        watched.read()
        assert watched.begun == {path}
        file.write(b"2")
    assert watched.read() == ({path}, False)
    assert watched.begun == set()
    path.write_bytes(b"3")
    watched.read()
    assert watched.begun == set()


def test_a_close_without_a_change_before_it_does_not_count(watched):
    """HDF5 opens a file, closes it, and opens it again to empty it."""
    path = watched.root / "a"
    path.write_bytes(b"1")
    watched.read()
    watched.watch_file(path)
    path.open("r+b").close()
    with path.open("wb"):
        assert watched.read() == ({path}, False)
        assert watched.begun == {path}


def test_few_files_are_watched_for_their_next_change(watched, monkeypatch):
    monkeypatch.setattr(inotify, "MAX_FILES", 2)
    watched.watch_file(watched.root / "missing")
    for name in "abc":
        (watched.root / name).write_bytes(b"1")
        watched.watch_file(watched.root / name)
    files = [(watched.root / name).open("wb") for name in "abc"]
    watched.read()
    assert {path.name for path in watched.begun} == {"b", "c"}
    for file in files:
        file.close()


def test_a_file_that_is_closed_after_its_directory_was_moved_in_was_not_moved_whole(watched, tmp_path):
    (tmp_path / "made").mkdir()
    with (tmp_path / "made" / "late").open("wb"):
        (tmp_path / "made" / "early").write_bytes(b"1")
        (tmp_path / "made").rename(watched.root / "step-1")
        watched.read()
        watched.moved.clear()
        (watched.root / "step-1").rename(watched.root / "step-2")
    closed, _ = watched.read()
    folder = watched.root / "step-2"
    assert (closed, watched.moved) == ({folder / "early", folder / "late"}, {folder, folder / "early"})
