import os

import pytest

from podferry.sidecar.capacity import file_system_of, measure, memory_left, node_left

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


def test_the_page_cache_of_files_gives_way_and_is_not_counted(root, membership):
    stat = "anon 100\nfile 800\nshmem 150\ninactive_anon 150\ninactive_file 400\nactive_file 250\n"
    group(root, 1000, 950, stat)
    assert memory_left(root, membership("0::/")) == 700
    stat = "inactive_file 1\nactive_file 1\ntotal_inactive_file 300\ntotal_active_file 100\n"
    group(root / "memory", 1000, 900, stat, version=1)
    assert memory_left(root, membership("4:memory:/")) == 500


def test_the_machine_leaves_what_is_available_and_what_can_be_swapped(tmp_path):
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
    assert file_system_of(tmp_path, mountinfo) == "tmpfs"


def test_a_device_that_is_not_mounted_and_a_system_without_mountinfo_tell_nothing(tmp_path):
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(mount(20, "0:9999", "/proc", "proc"))
    assert file_system_of(tmp_path, mountinfo) == ""
    assert file_system_of(tmp_path, tmp_path / "absent") == ""


def test_a_directory_is_measured_as_it_is(tmp_path):
    found = measure(tmp_path)
    free = os.statvfs(tmp_path)
    assert 0 < found.volume_bytes <= free.f_blocks * free.f_frsize
    assert found.in_memory == (file_system_of(tmp_path) in {"tmpfs", "ramfs"})
    if not found.in_memory:
        assert found.memory_bytes is None
        assert found.node_bytes is None
