import os
from types import SimpleNamespace

import pytest

from podferry.contract.tmpfs_cost import PAGE_BYTES
from podferry.sidecar.staging import volume_capacity as module
from podferry.sidecar.staging.volume_capacity import (
    measure,
    memory_left,
    mount_of,
    node_left,
    swap_left,
)

V1_UNLIMITED = 9223372036854771712


def group(folder, limit, used, stat="", version=2):
    names = (
        ("memory.max", "memory.current")
        if version == 2
        else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    )
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip((*names, "memory.stat"), (limit, used, stat), strict=True):
        (folder / name).write_text(f"{value}\n")


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "cgroup"
    folder.mkdir()
    return folder


@pytest.fixture
def membership(tmp_path):
    path = tmp_path / "membership"

    def written(*lines):
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return written


def test_version_2_in_a_container_has_its_own_group_as_the_root(root, membership):
    group(root, 1000, 400)
    assert memory_left(root, membership("0::/")) == 600


def test_the_tightest_limit_above_counts(root, membership):
    group(root / "kubepods", 1000, 700)
    group(root / "kubepods/pod1", "max", 500)
    group(root / "kubepods/pod1/sidecar", 800, 100)
    assert memory_left(root, membership("0::/kubepods/pod1/sidecar")) == 300


def test_no_limit_is_none(root, membership):
    group(root / "a", "max", 500)
    assert memory_left(root, membership("0::/a")) is None
    group(root / "memory", V1_UNLIMITED, 500, version=1)
    assert memory_left(root, membership("4:memory:/")) is None


def test_without_cgroups_there_is_no_limit(root, tmp_path, membership):
    assert memory_left(root, tmp_path / "absent") is None
    assert memory_left(root, membership("0::/gone", "1:name=systemd:/", "2:cpu,cpuacct:/")) is None


def test_version_1_reads_the_memory_hierarchy(root, membership):
    group(root / "memory", V1_UNLIMITED, 900, version=1)
    group(root / "memory/pod1", 1000, 250, version=1)
    lines = ("9:name=systemd:/", "5:cpu,memory:/pod1", "0::/")
    assert memory_left(root, membership(*lines)) == 750


def test_version_1_in_a_container_names_a_path_that_is_not_mounted(root, membership):
    group(root / "memory", 1000, 250, version=1)
    assert memory_left(root, membership("4:memory:/kubepods/pod1/abc")) == 750


def test_a_limit_that_is_exceeded_leaves_nothing(root, membership):
    group(root, 1000, 1200)
    assert memory_left(root, membership("0::/")) == 0


def test_the_page_cache_is_reclaimable_and_counts_as_available(root, membership):
    stat = "anon 100\nfile 800\nshmem 150\ninactive_anon 150\ninactive_file 400\nactive_file 250\n"
    group(root, 1000, 950, stat)
    assert memory_left(root, membership("0::/")) == 700
    stat = "inactive_file 1\nactive_file 1\ntotal_inactive_file 300\ntotal_active_file 100\n"
    group(root / "memory", 1000, 900, stat, version=1)
    assert memory_left(root, membership("4:memory:/")) == 500


POD = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice"


@pytest.mark.parametrize(
    ("sidecar", "pod", "left"),
    [
        ((1000, 100), (5000, 4500), 500),  # the trainer has used the pod's up
        ((1000, 100), (5000, 2000), 900),
        (("max", 100), (5000, 2000), 3000),
        ((1000, 100), ("max", 2000), 900),
        (("max", 100), ("max", 2000), None),
    ],
)
def test_a_pod_as_nested_by_the_kubelet(root, membership, sidecar, pod, left):
    """Version 2 with a visible pod group: the sidecar's own limit, and the pod's above it."""
    group(root / "kubepods.slice", "max", 9000)
    group(root / POD, *pod)
    group(root / POD / "cri-containerd-abc.scope", *sidecar)
    assert memory_left(root, membership(f"0::/{POD}/cri-containerd-abc.scope")) == left


@pytest.mark.parametrize(("high", "left"), [("700", 300), ("max", 600), ("900", 500), ("2000", 600)])
def test_memory_above_memory_high_is_not_available(root, membership, high, left):
    """Memory QoS sets it below the limit: a tmpfs is not reclaimable, so a writer would be throttled."""
    group(root, 1000, 400)
    (root / "memory.high").write_text(f"{high}\n")
    assert memory_left(root, membership("0::/")) == left
    (root / "memory.max").write_text("max\n")
    assert memory_left(root, membership("0::/")) == (None if high == "max" else int(high) - 400)


def test_version_1_reports_an_invisible_limit_above(root, membership):
    group(root / "memory", V1_UNLIMITED, 250, "hierarchical_memory_limit 1000\ncache 7\n", version=1)
    assert memory_left(root, membership("4:memory:/kubepods/pod1/abc")) == 750
    group(root / "memory", 800, 250, f"hierarchical_memory_limit {V1_UNLIMITED}\n", version=1)
    assert memory_left(root, membership("4:memory:/")) == 550


def test_a_hybrid_reads_the_hierarchy_that_limits(root, membership):
    group(root / "memory/pod1", 1000, 250, version=1)
    group(root / "memory", V1_UNLIMITED, 900, version=1)
    (root / "unified").mkdir()
    assert memory_left(root, membership("7:memory:/pod1", "0::/init.scope")) == 750


def test_the_tightest_group_limits_the_swap(root, membership):
    assert swap_left(root, membership("0::/a")) is None
    for folder, limit, used in ((root / "a", "max", 5), (root / "a/b", 100, 30), (root, 90, 0)):
        folder.mkdir(exist_ok=True)
        (folder / "memory.swap.max").write_text(f"{limit}\n")
        (folder / "memory.swap.current").write_text(f"{used}\n")
    assert swap_left(root, membership("0::/a/b")) == 70
    (root / "memory.swap.max").write_text("0\n")
    assert swap_left(root, membership("0::/a/b")) == 0


def test_a_machine_does_not_swap_more_than_it_may(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemAvailable: 40 kB\nSwapFree: 20 kB\n")
    assert [node_left(meminfo, swap) for swap in (None, 0, 5 << 10, 1 << 30)] == [
        60 << 10,
        40 << 10,
        45 << 10,
        60 << 10,
    ]


@pytest.mark.parametrize(("options", "swap"), [("rw,size=24k", 7), ("rw,size=24k,noswap", 0)])
def test_a_noswap_volume_is_measured_without_swap(tmp_path, monkeypatch, options, swap):
    monkeypatch.setattr(module, "mount_of", lambda directory: ("tmpfs", frozenset(options.split(","))))
    monkeypatch.setattr(module, "swap_left", lambda: 7)
    monkeypatch.setattr(module, "node_left", lambda swap: 1000 + swap)
    found = measure(tmp_path)
    assert (found.node_bytes, found.device) == (1000 + swap, tmp_path.stat().st_dev)


def test_only_a_memory_file_system_reports_its_page_size(tmp_path, monkeypatch):
    """NFS gives the size of its transfers there."""
    monkeypatch.setattr(
        module.os, "statvfs", lambda path: SimpleNamespace(f_bavail=9, f_frsize=1 << 20, f_files=0)
    )
    for kind, page in (("nfs4", PAGE_BYTES), ("tmpfs", 1 << 20)):
        monkeypatch.setattr(module, "mount_of", lambda directory, kind=kind: (kind, frozenset()))
        found = measure(tmp_path)
        assert (found.page_bytes, found.volume_bytes, found.volume_files) == (page, 9 << 20, None)


def test_the_machine_has_what_is_available_and_what_can_be_swapped(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(
        "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable:  40 kB\nSwapFree: 2 kB\nHugePages_Free: 0\n"
    )
    assert node_left(meminfo) == 42 * 1024
    meminfo.write_text("MemTotal: 100 kB\n")
    assert node_left(meminfo) is None
    assert node_left(tmp_path / "absent") is None


def mount(number, device, point, kind, optional="shared:1 master:2"):
    middle = f"{optional} " if optional else ""
    return f"{number} 25 {device} / {point} rw,relatime {middle}- {kind} source rw,size=24k\n"


def test_the_file_system_is_found_by_its_device(tmp_path):
    device = tmp_path.stat().st_dev
    own = f"{os.major(device)}:{os.minor(device)}"
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(
        mount(20, "0:9999", "/proc", "proc")
        + mount(21, own, r"/a\040-\040b", "tmpfs", optional="")
        + mount(22, "0:9998", "/x", "overlay")
    )
    assert mount_of(tmp_path, mountinfo)[0] == "tmpfs"


def test_a_device_that_is_not_mounted_and_a_system_without_mountinfo_are_unknown(tmp_path):
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(mount(20, "0:9999", "/proc", "proc"))
    assert mount_of(tmp_path, mountinfo)[0] == ""
    assert mount_of(tmp_path, tmp_path / "absent")[0] == ""


def test_a_real_directory_is_measured(tmp_path):
    found = measure(tmp_path)
    free = os.statvfs(tmp_path)
    assert 0 < found.volume_bytes <= free.f_blocks * free.f_frsize
    assert found.in_memory == (mount_of(tmp_path)[0] in {"tmpfs", "ramfs"})
    if not found.in_memory:
        assert found.memory_bytes is None
        assert found.node_bytes is None
