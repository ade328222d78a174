"""What a command takes of memory: its processes while they run, and what stays charged for its files."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from serving import cgroups

from podferry.contract.tmpfs_cost import charged_bytes

EVERY = 0.05
"""Seconds between two looks: a prefetch that takes seconds is seen many times."""
OWN = ("Pss_Anon:", "Pss_File:")
"""Each process's share of its memory, without the pages of memory volumes. Source: proc(5), smaps_rollup."""


def family(process: int) -> list[int]:
    """A process and all that it has started and that lives."""
    found = [process]
    with suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in (thread / "children").read_text().split():
                found += family(int(child))
    return found


def resident(process: int) -> int:
    """Bytes that a process and those that it has started hold together, pages of memory volumes left out."""
    total = 0
    for one in family(process):
        with suppress(OSError):
            lines = [line.split() for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()]
            total += sum(int(line[1]) * 1024 for line in lines if line[0] in OWN)
    return total


def peak(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """The most that `resident` gives while a command runs.

    Raises:
        RuntimeError: It failed.
    """
    highest = 0
    with subprocess.Popen(
        words, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        while process.poll() is None:
            highest = max(highest, resident(process.pid))
            time.sleep(EVERY)
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
    return highest


@contextmanager
def group() -> Iterator[Path | None]:
    """A control group of our own for memory, None where none can be made. What is in it must have ended."""
    found = _own_group()
    made = found / f"podferry-bench-{os.getpid()}" if found else None
    try:
        if made is not None:
            made.mkdir()
    except OSError:
        made = None
    try:
        yield made if made is not None and (made / "memory.stat").exists() else None
    finally:
        if made is not None:
            made.rmdir()


def _own_group() -> Path | None:
    """This process's directory in the hierarchy that counts memory."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for mount, kind in cgroups.hierarchies():
            fits = mount.name == "memory" if kind == "cgroup" else controllers == ""
            place = mount / path.lstrip("/")
            if fits and (place / "memory.stat").exists():
                return place
    return None


def run_in(group: Path, words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command in a control group; bytes that stay charged there for files in memory when it has ended.

    Raises:
        RuntimeError: It failed.
    """
    join = f'echo $$ > {group / "cgroup.procs"} && exec "$@"'
    command = ["sh", "-c", join, "sh", *words]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return still_charged(group)


def still_charged(group: Path) -> int:
    """Bytes of memory volumes and of the kernel that a control group without processes is charged.

    Source: the kernel's cgroup-v2.rst (`memory.stat`: shmem, slab) and cgroup-v1/memory.rst (kmem).
    """
    stat = {
        name: int(count) for name, count in map(str.split, (group / "memory.stat").read_text().splitlines())
    }
    kernel = group / "memory.kmem.usage_in_bytes"
    return stat["shmem"] + (int(kernel.read_text()) if kernel.exists() else stat["slab"])


def sum_of(folder: Path) -> int:
    """What `contract.tmpfs_cost.charged` says of the files below a directory."""
    return charged_bytes(
        Path(place, name).stat().st_size for place, _, names in os.walk(folder) for name in names
    )
