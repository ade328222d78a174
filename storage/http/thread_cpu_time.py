"""Measures how busy the current thread is."""

from __future__ import annotations

import time
from pathlib import Path

SCHEDSTAT = Path("/proc/thread-self/schedstat")


def busy_seconds() -> float:
    """Seconds that this thread ran, or was ready to run without a processor if the system reports that."""
    try:
        # The line: nanoseconds run, nanoseconds waited, time slices. Source: Linux, scheduler/sched-stats.
        waited = int(SCHEDSTAT.read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        waited = 0.0
    return time.thread_time() + waited
