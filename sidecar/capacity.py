"""How much the stage's volume and the memory limits still take, as the kernel says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

UNLIMITED = 1 << 60
"""cgroup v1 writes 'no limit' as a number near 2^63."""
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs"})
CGROUP = Path("/sys/fs/cgroup")


class Capacity(msgspec.Struct, frozen=True):
    """What a directory can take.

    Attributes:
        volume_bytes: Free bytes of its file system.
        volume_files: Free inodes; None where the file system does not count them.
        memory_bytes: What the nearest cgroup limit still allows; None without a limit, or on a disk.
        node_bytes: What the machine has left; None where it does not tell, or on a disk.
        in_memory: Whether the file system keeps its files in memory.
    """

    volume_bytes: int
    volume_files: int | None = None
    memory_bytes: int | None = None
    node_bytes: int | None = None
    in_memory: bool = True


def measure(directory: Path) -> Capacity:
    """The capacity of an existing directory now."""
    found = os.statvfs(directory)
    in_memory = file_system_of(directory) in MEMORY_FILE_SYSTEMS
    return Capacity(
        volume_bytes=found.f_bavail * found.f_frsize,
        volume_files=found.f_favail if found.f_files else None,
        memory_bytes=memory_left() if in_memory else None,
        node_bytes=node_left() if in_memory else None,
        in_memory=in_memory,
    )


def file_system_of(directory: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system that holds a directory, empty where the system does not tell (macOS).

    Source of the format: proc(5), `/proc/pid/mountinfo`.
    """
    try:
        lines = mountinfo.read_text().splitlines()
    except FileNotFoundError:
        return ""
    device = directory.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    kinds = [line.partition(" - ")[2].split()[0] for line in lines if line.split()[2] == wanted]
    return kinds[-1] if kinds else ""


def node_left(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Bytes that the machine can still give to a memory file system, None where it does not tell (macOS).

    Source: proc(5), `MemAvailable`, which counts the page cache that gives way; tmpfs may be swapped besides.
    """
    found = _numbers(meminfo)
    if "MemAvailable" not in found:
        return None
    return 1024 * (found["MemAvailable"] + found.get("SwapFree", 0))


def _numbers(path: Path) -> dict[str, int]:
    """The lines `name value …` of one of the kernel's files; empty where there is none."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {line[0].rstrip(":"): int(line[1]) for line in lines if len(line) > 1 and line[1].isdigit()}


def memory_left(root: Path = CGROUP, membership: Path = Path("/proc/self/cgroup")) -> int | None:
    """Bytes that the tightest memory limit above this process still allows, None without any limit.

    Reads cgroup v2 (`memory.max`, `memory.current`) and v1 (`memory.limit_in_bytes`,
    `memory.usage_in_bytes`); in a container the own group is mounted as the root. The page cache of files
    counts as used and gives way under pressure, so it is left.
    """
    left = [limit - used for limit, used in _limits(root, membership) if limit < UNLIMITED]
    return max(min(left), 0) if left else None


def _limits(root: Path, membership: Path) -> Iterator[tuple[int, int]]:
    for base, path, names in _groups(root, membership):
        group = base / path.lstrip("/")
        while True:
            pair = _pair(group, names)
            if pair:
                yield pair
            if group == base:
                break
            group = group.parent


def _groups(root: Path, membership: Path) -> Iterator[tuple[Path, str, tuple[str, str]]]:
    """(mount, own path, file names) of each hierarchy that limits memory."""
    try:
        lines = membership.read_text().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield root, path, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            yield root / "memory", path, ("memory.limit_in_bytes", "memory.usage_in_bytes")


def _pair(group: Path, names: tuple[str, str]) -> tuple[int, int] | None:
    try:
        limit, used = ((group / name).read_text().strip() for name in names)
    except OSError:
        return None
    return None if limit == "max" else (int(limit), int(used) - _cache(group))


def _cache(group: Path) -> int:
    """Bytes of files' page cache; the pages of memory file systems are on the lists of anonymous memory.

    Source: the kernel's cgroup-v2.rst and cgroup-v1/memory.rst, `memory.stat`; in v1 the sums with the
    groups below are those that begin with `total_`.
    """
    found = _numbers(group / "memory.stat")
    return sum(found.get(f"total_{name}", found.get(name, 0)) for name in ("inactive_file", "active_file"))
