"""Measures the free space of a volume and what the memory limits leave, as the kernel reports them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from podferry.contract.tmpfs_cost import PAGE_BYTES
from podferry.sidecar.runtime.cgroups import CGROUP, MEMBERSHIP, groups_of, read_number

UNLIMITED = 1 << 60
"""cgroup v1 reports 'no limit' as a number near 2^63."""
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs"})
MOUNTINFO = Path("/proc/self/mountinfo")


class Capacity(msgspec.Struct, frozen=True):
    """How much a directory can hold.

    Attributes:
        volume_bytes: Free bytes of its file system.
        volume_files: Free inodes, or None if the file system does not count them.
        memory_bytes: What the tightest cgroup limit still allows; None without a limit, or on a disk.
        node_bytes: What the machine has left; None if it does not report that, or on a disk.
        in_memory: Whether the file system keeps its files in memory.
        device: Identifies the file system: directories on one share its free space. None if not measured.
        page_bytes: The allocation unit, which the smallest file takes: 64 KiB on some arm64 kernels.
    """

    volume_bytes: int
    volume_files: int | None = None
    memory_bytes: int | None = None
    node_bytes: int | None = None
    in_memory: bool = True
    device: int | None = None
    page_bytes: int = PAGE_BYTES


def measure(directory: Path) -> Capacity:
    """Measure an existing directory."""
    volume = os.statvfs(directory)
    file_system, options = mount_of(directory)
    in_memory = file_system in MEMORY_FILE_SYSTEMS
    swap = 0 if "noswap" in options else swap_left()
    return Capacity(
        volume_bytes=volume.f_bavail * volume.f_frsize,
        volume_files=volume.f_favail if volume.f_files else None,
        memory_bytes=memory_left() if in_memory else None,
        node_bytes=node_left(swap=swap) if in_memory else None,
        in_memory=in_memory,
        device=directory.stat().st_dev,
        # On a disk this may be the transfer size (NFS), which small files do not take.
        page_bytes=volume.f_frsize if in_memory else PAGE_BYTES,
    )


def mount_of(directory: Path, mountinfo: Path = MOUNTINFO) -> tuple[str, frozenset[str]]:
    """Type and options of a directory's file system; empty if the system does not report them (macOS).

    Source: proc(5), `/proc/pid/mountinfo`; for `noswap`, which kubelet sets: tmpfs(5).
    """
    try:
        lines = mountinfo.read_text().splitlines()
    except FileNotFoundError:
        return "", frozenset()
    device = directory.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts = [line.partition(" - ")[2].split() for line in lines if line.split()[2] == number]
    return (mounts[-1][0], frozenset(mounts[-1][-1].split(","))) if mounts else ("", frozenset())


def node_left(meminfo: Path = Path("/proc/meminfo"), swap: int | None = None) -> int | None:
    """Bytes that the machine can still give to a memory file system, or None if unreported (macOS).

    Source: proc(5), `MemAvailable`, which includes the reclaimable page cache.

    Args:
        meminfo: The kernel's file.
        swap: Most bytes that may be swapped out; None for all that are free.
    """
    kilobytes = _read_table(meminfo)
    if "MemAvailable" not in kilobytes:
        return None
    free = 1024 * kilobytes.get("SwapFree", 0)
    return 1024 * kilobytes["MemAvailable"] + (free if swap is None else min(free, swap))


def _read_table(path: Path) -> dict[str, int]:
    """The lines `name value …` of one of the kernel's files; empty if it does not exist."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {line[0].rstrip(":"): int(line[1]) for line in lines if len(line) > 1 and line[1].isdigit()}


def memory_left(root: Path = CGROUP, membership: Path = MEMBERSHIP) -> int | None:
    """Bytes that the tightest memory limit of this process still allows, or None without a limit.

    Reads cgroup v2 and v1, the process's group and all visible groups above it; in a container the group is
    mounted as the root. The page cache of files counts as used, but is reclaimed under pressure: it counts
    as available here.
    """
    available = [
        limit - used
        for group, is_v2 in groups_of("memory", root, membership)
        for limit, used in (_limits_v2(group) if is_v2 else _limits_v1(group))
        if limit < UNLIMITED
    ]
    return max(min(available), 0) if available else None


def swap_left(root: Path = CGROUP, membership: Path = MEMBERSHIP) -> int | None:
    """Bytes that this process's groups may still swap out, or None without a limit; kubelet sets 0."""
    pairs = (
        (read_number(group / "memory.swap.max"), read_number(group / "memory.swap.current"))
        for group, is_v2 in groups_of("memory", root, membership)
        if is_v2
    )
    available = [limit - (used or 0) for limit, used in pairs if limit is not None]
    return max(min(available), 0) if available else None


def _limits_v2(group: Path) -> Iterator[tuple[int, int]]:
    """(limit, used) of a group. Above `memory.high` it is throttled until it frees memory; a tmpfs does not.

    Source: the kernel's cgroup-v2.rst, "Memory Interface Files".
    """
    used = read_number(group / "memory.current")
    for limit in (read_number(group / "memory.max"), read_number(group / "memory.high")):
        if used is not None and limit is not None:
            yield limit, used - _page_cache(_read_table(group / "memory.stat"))


def _limits_v1(group: Path) -> Iterator[tuple[int, int]]:
    """(limit, used) of a group. `hierarchical_memory_limit` includes groups that a container cannot see.

    Source: the kernel's cgroup-v1/memory.rst, section 5.2.
    """
    used, stat = read_number(group / "memory.usage_in_bytes"), _read_table(group / "memory.stat")
    for limit in (read_number(group / "memory.limit_in_bytes"), stat.get("hierarchical_memory_limit")):
        if used is not None and limit is not None:
            yield limit, used - _page_cache(stat)


def _page_cache(stat: dict[str, int]) -> int:
    """Bytes of the page cache; the pages of memory file systems count as anonymous memory instead.

    Source: as above, `memory.stat`; in v1 the totals including subgroups start with `total_`.
    """
    return sum(stat.get(f"total_{name}", stat.get(name, 0)) for name in ("inactive_file", "active_file"))
