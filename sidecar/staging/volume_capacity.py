"""How much the stage's volume and the memory limits still take, as the kernel says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from podferry.contract.tmpfs_cost import PAGE_BYTES

UNLIMITED = 1 << 60
"""cgroup v1 writes 'no limit' as a number near 2^63."""
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs"})
CGROUP = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
MOUNTINFO = Path("/proc/self/mountinfo")


class Capacity(msgspec.Struct, frozen=True):
    """What a directory can take.

    Attributes:
        volume_bytes: Free bytes of its file system.
        volume_files: Free inodes; None where the file system does not count them.
        memory_bytes: What the nearest cgroup limit still allows; None without a limit, or on a disk.
        node_bytes: What the machine has left; None where it does not tell, or on a disk.
        in_memory: Whether the file system keeps its files in memory.
        device: Tells its file system from others: directories on one share its room. None where nobody asked.
        page_bytes: What it allocates at a time, the least that a file takes: 64 KiB on some arm64 kernels.
    """

    volume_bytes: int
    volume_files: int | None = None
    memory_bytes: int | None = None
    node_bytes: int | None = None
    in_memory: bool = True
    device: int | None = None
    page_bytes: int = PAGE_BYTES


def measure(directory: Path) -> Capacity:
    """The capacity of an existing directory now."""
    found = os.statvfs(directory)
    kind, options = _mount_of(directory)
    in_memory = kind in MEMORY_FILE_SYSTEMS
    swap = 0 if "noswap" in options else swap_left()
    return Capacity(
        volume_bytes=found.f_bavail * found.f_frsize,
        volume_files=found.f_favail if found.f_files else None,
        memory_bytes=memory_left() if in_memory else None,
        node_bytes=node_left(swap=swap) if in_memory else None,
        in_memory=in_memory,
        device=directory.stat().st_dev,
        # A disk's may be the size of its transfers (NFS), which small files do not take.
        page_bytes=found.f_frsize if in_memory else PAGE_BYTES,
    )


def file_system_of(directory: Path, mountinfo: Path = MOUNTINFO) -> str:
    """The type of the file system that holds a directory, empty where the system does not tell (macOS)."""
    return _mount_of(directory, mountinfo)[0]


def _mount_of(directory: Path, mountinfo: Path = MOUNTINFO) -> tuple[str, frozenset[str]]:
    """Type and options of the file system that holds a directory.

    Source of the format: proc(5), `/proc/pid/mountinfo`; of `noswap`: tmpfs(5), which kubelet sets.
    """
    try:
        lines = mountinfo.read_text().splitlines()
    except FileNotFoundError:
        return "", frozenset()
    device = directory.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    found = [line.partition(" - ")[2].split() for line in lines if line.split()[2] == wanted]
    return (found[-1][0], frozenset(found[-1][-1].split(","))) if found else ("", frozenset())


def node_left(meminfo: Path = Path("/proc/meminfo"), swap: int | None = None) -> int | None:
    """Bytes that the machine can still give to a memory file system, None where it does not tell (macOS).

    Source: proc(5), `MemAvailable`, which counts the page cache that gives way.

    Args:
        meminfo: The kernel's figures.
        swap: Bytes that may be swapped out at most; None for as many as are free.
    """
    found = _numbers(meminfo)
    if "MemAvailable" not in found:
        return None
    free = 1024 * found.get("SwapFree", 0)
    return 1024 * found["MemAvailable"] + (free if swap is None else min(free, swap))


def _numbers(path: Path) -> dict[str, int]:
    """The lines `name value …` of one of the kernel's files; empty where there is none."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {line[0].rstrip(":"): int(line[1]) for line in lines if len(line) > 1 and line[1].isdigit()}


def memory_left(root: Path = CGROUP, membership: Path = MEMBERSHIP) -> int | None:
    """Bytes that the tightest memory limit above this process still allows, None without any limit.

    Reads cgroup v2 and v1, the own group and all above it that can be seen; in a container the own group is
    mounted as the root. The page cache of files counts as used and gives way under pressure, so it is left.
    """
    left = [
        limit - used
        for group, is_v2 in _groups(root, membership)
        for limit, used in (_limits_v2(group) if is_v2 else _limits_v1(group))
        if limit < UNLIMITED
    ]
    return max(min(left), 0) if left else None


def swap_left(root: Path = CGROUP, membership: Path = MEMBERSHIP) -> int | None:
    """Bytes that this process's groups may still swap out, None without a limit; kubelet's default is 0."""
    pairs = (
        (_number(group / "memory.swap.max"), _number(group / "memory.swap.current"))
        for group, is_v2 in _groups(root, membership)
        if is_v2
    )
    left = [limit - (used or 0) for limit, used in pairs if limit is not None]
    return max(min(left), 0) if left else None


def _groups(root: Path, membership: Path) -> Iterator[tuple[Path, bool]]:
    """The own group of each hierarchy that limits memory and all above it, and whether it is of version 2."""
    try:
        lines = membership.read_text().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base = root / "memory" if controllers else root
        group = base / path.lstrip("/")
        while group != base:
            yield group, not controllers
            group = group.parent
        yield base, not controllers


def _limits_v2(group: Path) -> Iterator[tuple[int, int]]:
    """(limit, used) of a group. Above `memory.high` it is throttled until it frees what a tmpfs never does.

    Source: the kernel's cgroup-v2.rst, "Memory Interface Files".
    """
    used = _number(group / "memory.current")
    for limit in (_number(group / "memory.max"), _number(group / "memory.high")):
        if used is not None and limit is not None:
            yield limit, used - _cache(_numbers(group / "memory.stat"))


def _limits_v1(group: Path) -> Iterator[tuple[int, int]]:
    """(limit, used) of a group. `hierarchical_memory_limit` counts groups above that a container cannot see.

    Source: the kernel's cgroup-v1/memory.rst, section 5.2.
    """
    used, stat = _number(group / "memory.usage_in_bytes"), _numbers(group / "memory.stat")
    for limit in (_number(group / "memory.limit_in_bytes"), stat.get("hierarchical_memory_limit")):
        if used is not None and limit is not None:
            yield limit, used - _cache(stat)


def _number(path: Path) -> int | None:
    """What one of the kernel's files says; None where there is none, or it says `max`."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _cache(stat: dict[str, int]) -> int:
    """Bytes of files' page cache; the pages of memory file systems are on the lists of anonymous memory.

    Source: as above, `memory.stat`; in v1 the sums with the groups below are those that begin with `total_`.
    """
    return sum(stat.get(f"total_{name}", stat.get(name, 0)) for name in ("inactive_file", "active_file"))
