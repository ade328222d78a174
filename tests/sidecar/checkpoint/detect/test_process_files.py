import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from podferry.sidecar.checkpoint.detect.process_files import FileKey, Survey, survey
from tests.support.file_openers import MAPS, READS, WRITES, opener

PROC = Path("/proc")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "w.bin"
    path.write_bytes(b"0" * 8192)
    return path


def look(path: Path, proc: Path = PROC, seconds: float = 60.0) -> Survey:
    return survey({path: path.stat()}, proc, seconds)


@pytest.mark.parametrize(("how", "expected"), [(WRITES, True), (MAPS, True), (READS, False)])
def test_it_sees_writers_and_mappings_and_no_readers(file, how, expected):
    with opener(file, how):
        assert look(file).open == ({FileKey.of(file.stat())} if expected else frozenset())
    assert look(file).open == frozenset()


def test_own_descriptors_do_not_count(file):
    with file.open("r+b"):
        assert look(file).open == frozenset()


def test_another_file_of_the_same_name_does_not_count(file):
    (file.parent / "other").mkdir()
    other = file.parent / "other" / file.name
    other.write_bytes(b"1" * 8192)
    with opener(other, WRITES), opener(other, MAPS):
        assert look(file).open == frozenset()


@pytest.fixture
def processes(tmp_path, file):
    """A /proc with one process of this user, which has the file open."""
    process = tmp_path / "proc" / "7"
    (process / "fd").mkdir(parents=True)
    (process / "fd" / "3").symlink_to(file)
    (process / "fdinfo").mkdir()
    (process / "fdinfo" / "3").write_bytes(b"pos:\t0\nflags:\t0100002\nmnt_id:\t30\n")
    (process / "maps").write_bytes(b"")
    return tmp_path / "proc"


def test_every_process_of_the_owner_was_looked_at(processes, file):
    assert look(file, processes) == Survey(frozenset({FileKey.of(file.stat())}), covered=True)


def test_without_time_nothing_is_covered(processes, file):
    assert look(file, processes, seconds=-1.0) == Survey(frozenset(), covered=False)


def test_processes_that_end_meanwhile_are_left_out(processes, file):
    (processes / "8").mkdir()
    (processes / "7" / "fd" / "4").symlink_to(processes / "gone" / file.name)
    assert look(file, processes).covered


def test_a_process_of_the_owner_that_may_not_be_looked_at_is_not_covered(processes, file):
    (processes / "7" / "maps").unlink()
    (processes / "7" / "maps").mkdir()  # EISDIR, for want of an error that root meets
    assert not look(file, processes).covered


ASK_AS_ANOTHER_USER = """
import os, sys
from pathlib import Path
from podferry.sidecar.checkpoint.detect.process_files import survey
os.setgroups([]), os.setgid(65534), os.setuid(65534)
path = Path(sys.argv[1])
print(survey({path: path.stat()}, Path("/proc"), 60.0))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
def test_another_users_processes_are_not_covered():
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        path = Path(directory) / "w.bin"
        path.write_bytes(b"0")
        with opener(path, WRITES):
            command = [sys.executable, "-c", ASK_AS_ANOTHER_USER, path]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "Survey(open=frozenset(), covered=False)\n"
