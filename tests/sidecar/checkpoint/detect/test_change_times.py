"""Which change times show a rename by the trainer."""

from __future__ import annotations

import os

import pytest

from podferry.sidecar.checkpoint.detect.change_times import ChangeTimes
from podferry.sidecar.runtime.file_identity import FileIdentity


@pytest.fixture
def file(tmp_path):
    """A file whose last write is long past: a rename since would look the same."""
    path = tmp_path / "a.raw"
    path.write_bytes(b"1")
    os.utime(path, ns=(0, 0))
    return path


def shows_move(times, path):
    stat = path.stat()
    return times.shows_move(stat, stat.st_mtime_ns)


def files_of(path):
    return ((path.name, FileIdentity.of(path.stat())),)


def test_a_change_after_the_last_write_shows_a_rename(file):
    assert shows_move(ChangeTimes(), file)
    file.write_bytes(b"2")
    assert not shows_move(ChangeTimes(), file)


def test_what_the_agent_has_linked_shows_nothing(file):
    times = ChangeTimes()
    assert times.link(files_of(file))
    assert not times.link(files_of(file))  # it is noted already
    assert not shows_move(times, file)
    restarted = ChangeTimes()
    restarted.load(0, sorted(times.linked))
    assert not shows_move(restarted, file)


def test_what_changed_before_this_agent_shows_nothing(file):
    times = ChangeTimes()
    times.load(file.stat().st_ctime_ns, [])
    assert not shows_move(times, file)
    times.load(file.stat().st_mtime_ns, [])
    assert shows_move(times, file)


def test_what_was_written_before_this_agent_is_not_proven_by_a_rename(file):
    times = ChangeTimes()
    times.load(file.stat().st_mtime_ns + 1, [])
    assert not shows_move(times, file)


def test_an_inode_that_is_used_again_counts(file):
    times = ChangeTimes()
    times.link(files_of(file))
    times.keep({file.stat().st_ino})
    assert not shows_move(times, file)
    times.keep(set())
    assert shows_move(times, file)
