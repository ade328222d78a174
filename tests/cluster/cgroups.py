"""The cluster's control groups: one directory in every hierarchy, version 1 or 2."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cluster.process import wait_until


def hierarchies() -> list[tuple[Path, str]]:
    """The mounted hierarchies: mount point, and "cgroup" (version 1) or "cgroup2"."""
    mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [(Path(where), kind) for where, kind in mounts if kind in {"cgroup", "cgroup2"}]


def create(name: str) -> None:
    """Make the directories, so that a kubelet may use them as its root. Those above exist."""
    for mount, kind in hierarchies():
        directory = mount / name
        if kind == "cgroup2":
            _delegate(mount)
        if kind == "cgroup2" and directory.parent != mount:
            _delegate(directory.parent)
        directory.mkdir(exist_ok=True)
        # Version 1: a cpuset without processors or memory nodes takes no process.
        for setting in ("cpuset.cpus", "cpuset.mems"):
            if kind == "cgroup" and (directory / setting).exists():
                (directory / setting).write_text((mount / setting).read_text())


def _delegate(mount: Path) -> None:
    available = (mount / "cgroup.controllers").read_text().split()
    if available:
        (mount / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in available))


def directories(name: str) -> list[Path]:
    """The cluster's directories that exist, innermost first."""
    found = []
    for mount, _ in hierarchies():
        found += [Path(path) for path, _, _ in os.walk(mount / name, topdown=False)]
    return found


def remove(name: str, timeout: float = 20.0) -> None:
    """Remove the directories. The kernel takes a moment to let go of those whose processes ended."""
    wait_until(f"the control groups {name} to become empty", lambda: _removed(name), timeout)


def _removed(name: str) -> bool:
    for directory in directories(name):
        try:
            directory.rmdir()
        except OSError:  # still busy, or already gone
            continue
    return not directories(name)
