"""How many processors this process may keep busy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import ceil
from pathlib import Path

from podferry.sidecar.runtime.cgroups import CGROUP, MEMBERSHIP, groups_of, read_number


def cores(root: Path = CGROUP, membership: Path = MEMBERSHIP) -> int:
    """How many processors this process may use, at least one.

    The smallest of its affinity and of the CPU quotas of its group and all groups above it. A fraction counts
    as a processor: a process on each uses the quota up.
    """
    return max(1, min([_affinity(), *map(ceil, _quotas(root, membership))]))


def _affinity() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _quotas(root: Path, membership: Path) -> Iterator[float]:
    for group, is_v2 in groups_of("cpu", root, membership):
        quota, period = _quota_v2(group) if is_v2 else _quota_v1(group)
        if quota and period:
            yield quota / period


def _quota_v2(group: Path) -> tuple[int | None, int | None]:
    """Microseconds of CPU time in each period. The kernel's cgroup-v2.rst, `cpu.max`: `max` is no limit."""
    try:
        quota, period = (group / "cpu.max").read_text().split()
    except (OSError, ValueError):  # the root group has none
        return None, None
    return (int(quota) if quota.isdigit() else None), int(period)


def _quota_v1(group: Path) -> tuple[int | None, int | None]:
    """The same of version 1. The kernel's scheduler/sched-bwc.rst: -1 is no limit."""
    return read_number(group / "cpu.cfs_quota_us"), read_number(group / "cpu.cfs_period_us")
