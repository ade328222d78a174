"""Locks of real processes."""

import os
import socket
import subprocess
import sys

import pytest

from podferry.sidecar.runtime.file_lock import acquire, holders, is_locked, release, try_acquire

HOLD = """
import pathlib, sys, time
from podferry.sidecar.runtime.file_lock import acquire
acquire(pathlib.Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture(params=["directory", "file"])
def path(request, tmp_path):
    return tmp_path if request.param == "directory" else tmp_path / "lock"


def test_a_lock_is_exclusive_until_it_is_released(path):
    assert not is_locked(path)
    held = acquire(path)
    assert is_locked(path)
    assert try_acquire(path) is None
    release(held)
    assert not is_locked(path)
    release(try_acquire(path))


def test_the_end_of_its_process_frees_a_lock(path):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        assert is_locked(path)
        process.kill()
        process.wait()
        assert not is_locked(path)


def test_a_child_holds_only_what_it_inherits(path):
    for inheritable in (False, True):
        held = acquire(path, inheritable=inheritable)
        wait = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        descriptors = [held] if inheritable else []
        with subprocess.Popen(wait, stdin=subprocess.PIPE, pass_fds=descriptors) as child:
            release(held)
            assert is_locked(path) is inheritable
            child.stdin.close()
        assert not is_locked(path)


def test_a_forked_child_does_not_hold_it(path):
    held = acquire(path)
    parent, child = socket.socketpair()
    with parent, child:
        pid = os.fork()
        if not pid:
            child.send(b"1")
            child.recv(1)
            os._exit(0)
        assert parent.recv(1)
        release(held)
        free = not is_locked(path)
        parent.send(b"1")
        os.waitpid(pid, 0)
    assert free


def test_the_holders_of_a_lock_are_found(path):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert holders(path) == [other.pid]
        other.kill()
    assert holders(path) == []
