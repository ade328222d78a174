import os
import subprocess
import sys
from pathlib import Path

import pytest

from podferry.sidecar.runtime import cpu_limit
from podferry.sidecar.runtime.cpu_limit import cores

HIERARCHY = Path("/sys/fs/cgroup")
IN_POD = "/kubepods.slice/pod1/sidecar"


def quota(group, text, *, version=2):
    """A group with a limit: `QUOTA PERIOD`, microseconds."""
    group.mkdir(parents=True, exist_ok=True)
    if version == 2:
        (group / "cpu.max").write_text(f"{text}\n")
    else:
        for name, value in zip(("cpu.cfs_quota_us", "cpu.cfs_period_us"), text.split(), strict=True):
            (group / name).write_text(f"{value}\n")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A machine of 8 processors with no limit yet."""
    monkeypatch.setattr(cpu_limit, "_affinity", lambda: 8)
    return tmp_path / "cgroup"


@pytest.fixture
def counted(root, tmp_path):
    """The number for a process in these groups."""
    path = tmp_path / "membership"

    def count(*lines):
        path.write_text("".join(f"{line}\n" for line in lines))
        return cores(root, path)

    return count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("50000 100000", 1),
        ("1000 100000", 1),
        ("50000 10000", 5),
        ("1600000 100000", 8),
        ("", 8),
        ("100000", 8),
    ],
)
def test_the_quota_of_a_container(root, counted, text, expected):
    quota(root, text)
    assert counted("0::/") == expected


def test_the_tightest_quota_above_counts(root, counted):
    quota(root / "kubepods.slice", "400000 100000")
    quota(root / "kubepods.slice/pod1", "300000 100000")
    quota(root / IN_POD.lstrip("/"), "max 100000")
    assert counted(f"0::{IN_POD}") == 3
    quota(root / IN_POD.lstrip("/"), "100000 100000")
    assert counted(f"0::{IN_POD}") == 1


@pytest.mark.parametrize(
    ("text", "expected"), [("-1 100000", 8), ("250000 100000", 3), ("20000 100000", 1), ("100000 0", 8)]
)
def test_version_1(root, counted, text, expected):
    quota(root / "cpu" / "pod1", text, version=1)
    assert counted("4:memory:/x", "3:cpu,cpuacct:/pod1", "0::/") == expected


def test_version_1_in_a_container_and_nested(root, counted):
    """The path is the node's, and the group is mounted as the root."""
    quota(root / "cpu", "200000 100000", version=1)
    assert counted(f"3:cpuacct,cpu:{IN_POD}") == 2
    quota(root / "cpu" / "kubepods.slice", "100000 100000", version=1)
    assert counted(f"3:cpuacct,cpu:{IN_POD}") == 1


def test_without_cgroups_the_affinity_counts(root, counted, tmp_path):
    assert cores(root, tmp_path / "absent") == 8
    assert counted("0::/gone", "1:name=systemd:/") == 8


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system has no affinity")
def test_a_pinned_process_counts_its_processors():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from podferry.sidecar.runtime.cpu_limit import cores; print(cores())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


@pytest.mark.skipif(cores() < 2, reason="one processor is all there is")
def test_a_real_quota_is_seen():
    version_1 = (HIERARCHY / "cpu/cpu.cfs_quota_us").exists()
    group = HIERARCHY / ("cpu" if version_1 else "") / f"podferry-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control groups: {error}")
    try:
        _limit_to_one(group, version_1=version_1)
        code = (
            f"import os; os.write(os.open('{group}/cgroup.procs', os.O_WRONLY), b'0'); "
            "from podferry.sidecar.runtime.cpu_limit import cores; print(cores())"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "1"
    finally:
        group.rmdir()


def _limit_to_one(group, *, version_1):
    try:
        if version_1:
            (group / "cpu.cfs_quota_us").write_text("100000")
        else:
            (group / "cpu.max").write_text("100000 100000")
    except OSError as error:
        pytest.skip(f"no CPU controller: {error}")
