import errno
import os
from pathlib import Path

import pytest

from podferry.sidecar.checkpoint.detect.open_files import OpenFiles
from tests.support.file_openers import MAPS, READS, WRITES, opener


class Refuses:
    """Refuses leases, and counts how often it was asked."""

    def __init__(self, number: int) -> None:
        self.number, self.asked = number, 0

    def __call__(self, path: Path) -> bool:
        self.asked += 1
        raise OSError(self.number, "refused", str(path))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "w.bin"
    path.write_bytes(b"0" * 8192)
    return path


@pytest.fixture
def proc(tmp_path):
    """A /proc that has only the processes that a test links: even root may not look at all of a machine's."""
    (tmp_path / "proc").mkdir()
    return tmp_path / "proc"


def by_processes(proc: Path, *, sees_writers: bool = True) -> OpenFiles:
    return OpenFiles(sees_writers=sees_writers, proc=proc, by_lease=Refuses(errno.EACCES))


@pytest.mark.parametrize("lease", [True, False], ids=["lease", "proc"])
@pytest.mark.parametrize(("how", "expected"), [(WRITES, True), (MAPS, True), (READS, False)])
def test_either_way_writers_and_mappings_are_seen(file, proc, lease, how, expected):
    asked = OpenFiles(sees_writers=False) if lease else by_processes(proc)
    with opener(file, how) as process:
        (proc / str(process.pid)).symlink_to(f"/proc/{process.pid}")
        assert asked.is_open(file) is expected
    assert asked.is_open(file) is False


def test_where_the_trainers_processes_are_not_seen_only_open_files_are_known(file, proc):
    asked = by_processes(proc, sees_writers=False)
    assert asked.is_open(file) is None
    with opener(file, WRITES) as process:  # a pod that shares its process namespace
        (proc / str(process.pid)).symlink_to(f"/proc/{process.pid}")
        assert asked.is_open(file) is True


def test_without_proc_nothing_is_known(file, tmp_path):
    asked = OpenFiles(sees_writers=True, proc=tmp_path / "no", by_lease=Refuses(errno.EACCES))
    assert asked.is_open(file) is None


def test_a_missing_file_is_not_known(tmp_path):
    assert OpenFiles(sees_writers=True).look([tmp_path / "gone"]) == {tmp_path / "gone": None}


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to give a file to another user")
def test_a_structural_refusal_is_remembered_for_the_files_of_that_user(file):
    lease, other = Refuses(errno.EACCES), file.with_name("other")
    other.write_bytes(b"0")
    os.chown(other, 65534, 65534)
    asked = OpenFiles(sees_writers=True, by_lease=lease)
    for path in (file, file, other, other):
        asked.is_open(path)
    assert lease.asked == 2


def test_another_error_is_not_remembered(file, proc):
    lease = Refuses(errno.EMFILE)
    asked = OpenFiles(sees_writers=True, proc=proc, by_lease=lease)
    assert [asked.is_open(file), asked.is_open(file)] == [False, False]
    assert lease.asked == 2


def test_it_says_what_works(file, proc):
    user = os.getuid()
    asked = OpenFiles(sees_writers=False)
    assert asked.describe() == "not asked yet"
    asked.is_open(file)
    assert asked.describe() == f"leases for files of user {user}"
    refused = f"no leases for files of user {user} (another user's files, and no CAP_LEASE)"
    for sees_writers, processes in ((True, "/proc"), (False, "/proc without the trainer's processes")):
        asked = by_processes(proc, sees_writers=sees_writers)
        asked.is_open(file)
        assert asked.describe() == f"{refused}, {processes}"
