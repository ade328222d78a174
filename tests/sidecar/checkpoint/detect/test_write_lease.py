import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from podferry.sidecar.checkpoint.detect import write_lease
from podferry.sidecar.checkpoint.detect.inotify import Inotify
from podferry.sidecar.checkpoint.detect.write_lease import is_open_for_writing
from tests.support.file_openers import MAPS, READS, WRITES, opener


@pytest.fixture(params=[None, "/dev/shm"], ids=["disk", "memory"])
def file(request, tmp_path):
    with tempfile.TemporaryDirectory(dir=request.param or tmp_path) as directory:
        path = Path(directory) / "w.bin"
        path.write_bytes(b"0" * 8192)
        yield path


@pytest.mark.parametrize(("how", "expected"), [(WRITES, True), (MAPS, True), (READS, False)])
def test_it_sees_writers_and_mappings_and_no_readers(file, how, expected):
    assert is_open_for_writing(file) is False
    with opener(file, how):
        assert is_open_for_writing(file) is expected
    assert is_open_for_writing(file) is False


def test_the_end_of_a_writable_mapping_is_reported_like_a_close(file):
    """`content_recheck.py` relies on it: writes through a mapping need not change the time."""
    watched = Inotify(file.parent)
    with opener(file, MAPS):
        assert watched.read() == (set(), False)
    assert watched.read() == ({file}, False)
    watched.close()


def test_a_link_and_a_missing_file_are_errors(file):
    (file.parent / "link").symlink_to(file)
    with pytest.raises(OSError, match="symbolic links"):
        is_open_for_writing(file.parent / "link")
    with pytest.raises(FileNotFoundError):
        is_open_for_writing(file.parent / "missing")


def test_only_local_file_systems_are_believed(file, monkeypatch):
    monkeypatch.setattr(write_lease, "LOCAL_FILE_SYSTEMS", frozenset())
    with pytest.raises(OSError, match="not a local file system") as caught:
        is_open_for_writing(file)
    assert caught.value.errno == errno.EOPNOTSUPP


ASK_AS_ANOTHER_USER = """
import sys
from pathlib import Path
from podferry.sidecar.checkpoint.detect.write_lease import is_open_for_writing
import os
os.setgroups([]), os.setgid(65534), os.setuid(65534)
is_open_for_writing(Path(sys.argv[1]))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
def test_a_file_of_another_user_is_an_error():
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        path = Path(directory) / "w.bin"
        path.write_bytes(b"0")
        done = subprocess.run(
            [sys.executable, "-c", ASK_AS_ANOTHER_USER, path], capture_output=True, text=True, check=False
        )
    assert "PermissionError: [Errno 13]" in done.stderr


OPEN_OFTEN = """
import sys, time
print("ready", flush=True)
slowest, deadline = 0.0, time.monotonic() + 0.5
while time.monotonic() < deadline:
    begin = time.monotonic()
    open(sys.argv[1], "r+b").close()
    slowest = max(slowest, time.monotonic() - begin)
print(slowest)
"""
ASK_OFTEN = """
import signal, sys
from pathlib import Path
from podferry.sidecar.checkpoint.detect.write_lease import is_open_for_writing
assert signal.getsignal(signal.SIGIO) is signal.SIG_DFL
print("ready", flush=True)
while True:
    is_open_for_writing(Path(sys.argv[1]))
"""


def test_a_broken_lease_neither_ends_the_process_nor_delays_the_writer(file):
    """By default it sends SIGIO, which kills, and the writer waits for up to 45 s."""
    with subprocess.Popen([sys.executable, "-c", ASK_OFTEN, file], stdout=subprocess.PIPE) as asks:
        assert asks.stdout.readline() == b"ready\n"
        writes = subprocess.run(
            [sys.executable, "-c", OPEN_OFTEN, file], capture_output=True, text=True, check=True
        )
        assert asks.poll() is None
        asks.kill()
    assert float(writes.stdout.split()[1]) < 30.0
