import os
import subprocess
import sys

import pytest

from podferry.cache.shared_stage.place import SharedPlace
from podferry.cache.shared_stage.reader_locks import ReaderLocks
from podferry.sidecar.runtime.file_lock import release
from tests.support.patience import PATIENCE


def locks_of(directory):
    place = SharedPlace(directory, directory)
    release(place.claim())
    return ReaderLocks(place)


def test_a_lock_lasts_as_long_as_its_reader(tmp_path):
    locks = locks_of(tmp_path / "digits")
    assert locks.names() == []
    first, second = locks.make(7), locks.make(8)
    reader = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[first])
    os.close(first)
    os.close(second)
    assert locks_of(tmp_path / "digits").numbers() == [7]  # as a new holder sees it
    reader.communicate(b"\n", PATIENCE)
    assert locks.names() == []
    assert list((tmp_path / "digits.podferry/readers").iterdir()) == []


def test_a_descriptor_cannot_be_written(tmp_path):
    lock = locks_of(tmp_path / "digits").make(0)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(lock, b"x")
    os.close(lock)


def test_files_of_readers_that_have_ended_go(tmp_path):
    locks = locks_of(tmp_path / "digits")
    for _ in range(3):
        os.close(locks.make(0))
    assert len(list((tmp_path / "digits.podferry/readers").iterdir())) == 1
