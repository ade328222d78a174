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


def test_closes_and_moves_are_told_and_opens_are_not(watched):
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


def test_a_name_that_is_no_text_is_told_too(watched):
    name = os.fsdecode(b"w\xff.bin")
    (watched.root / name).write_bytes(b"1")
    assert watched.read()[0] == {watched.root / name}


def test_directories_made_one_in_the_other_are_watched_down_to_the_last(watched):
    deep = watched.root / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "early").write_bytes(b"1")  # before anybody could watch it: only scans find it
    watched.read()
    (deep / "late").write_bytes(b"1")
    assert watched.read()[0] == {deep / "late"}


def test_the_children_of_a_directory_that_is_moved_in_count_as_closed(watched, tmp_path):
    (tmp_path / "aside" / "deep").mkdir(parents=True)
    (tmp_path / "aside" / "deep" / "w").write_bytes(b"1")
    (tmp_path / "aside").rename(watched.root / "in")
    assert watched.read()[0] == {watched.root / "in" / "deep" / "w"}
    (watched.root / "in" / "deep" / "x").write_bytes(b"1")
    assert watched.read()[0] == {watched.root / "in" / "deep" / "x"}


def test_a_directory_that_is_renamed_is_followed_by_its_new_name(watched):
    (watched.root / "old").mkdir()
    watched.read()
    (watched.root / "old").rename(watched.root / "new")
    watched.read()
    (watched.root / "new" / "w").write_bytes(b"1")
    assert watched.read()[0] == {watched.root / "new" / "w"}


def test_a_directory_that_has_gone_again_is_passed_over(watched):
    number = next(iter(watched._directories))
    data = event(number, CREATE | ISDIR, b"gone") + event(number, inotify.MOVED_TO | ISDIR, b"gone")
    closed = set()
    assert watched._parse(data, closed) is False
    assert closed == set()


def test_an_overflow_is_told_and_what_came_before_it_kept(watched):
    number = next(iter(watched._directories))
    closed = set()
    data = event(number, CLOSE_WRITE, b"w") + event(-1, Q_OVERFLOW) + event(999, CLOSE_WRITE, b"x")
    assert watched._parse(data, closed) is True
    assert closed == {watched.root / "w"}


def test_a_removed_root_is_watched_again_once_it_is_back(watched):
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
    """The C library where no more directories can be watched."""

    def inotify_add_watch(self, *_: object) -> int:
        ctypes.set_errno(28)
        return -1


def test_a_directory_that_cannot_be_watched_counts_as_lost_events(watched):
    watched._libc = OutOfWatches()
    (watched.root / "new").mkdir()
    assert watched.read() == (set(), True)
    watched.refresh()


def test_a_root_that_is_none_is_an_error_and_gives_the_instance_back(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(FileNotFoundError):
        Inotify(tmp_path / "missing")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_layout_is_the_one_of_the_manual():
    assert (HEADER.size, struct.calcsize("iIII")) == (16, 16)
