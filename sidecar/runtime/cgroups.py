"""Finds this process's control groups, whose limits a container's processes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def groups_of(
    controller: str, root: Path = CGROUP, membership: Path = MEMBERSHIP
) -> Iterator[tuple[Path, bool]]:
    """This process's groups, innermost first, and whether each is of version 2.

    All visible groups above its own are included, as their limits apply, too. In a container its own group is
    mounted as the root, and the path above it may not exist.

    Source: cgroups(7), `/proc/pid/cgroup`.

    Args:
        controller: Such as `memory` or `cpu`; in version 1 each has a hierarchy of its own.
        root: Where the hierarchies are mounted.
        membership: The kernel's list of this process's groups.
    """
    try:
        lines = membership.read_text().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        base = root / controller if controllers else root
        group = base / path.lstrip("/")
        while group != base:
            yield group, not controllers
            group = group.parent
        yield base, not controllers


def read_number(path: Path) -> int | None:
    """The number in one of the kernel's files, or None if it does not exist or contains `max`."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
