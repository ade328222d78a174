"""What the user should know before training starts: a volume that is small, and what an earlier run left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from podferry.contract.errors import Problem, Refused
from podferry.contract.quantity import format_bytes
from podferry.contract.spec import FerrySpec
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.launch.leftovers import leftovers_of
from podferry.sidecar.staging.volume_capacity import MEMORY_FILE_SYSTEMS, mount_of

SMALL_VOLUME = 256 << 20
"""Bytes of a memory file system that checkpoints soon fill: Docker gives /dev/shm 64 MiB."""
MIN_FREE = 1 << 20
"""Bytes that must be free in it."""


def start_notes(spec: FerrySpec, directories: Directories) -> tuple[Problem, ...]:
    """Notes for a run that is about to start; raises `Refused` if its volume is full."""
    return (*_small_volumes(directories), *_left_behind(spec, directories.checkpoints))


def _small_volumes(directories: Directories) -> Iterator[Problem]:
    places = {"--checkpoint-path": directories.checkpoints, "--output-path": directories.outputs}
    for option, path in places.items():
        if path is None or mount_of(path)[0] not in MEMORY_FILE_SYSTEMS:
            continue
        volume = os.statvfs(path)
        size, free = volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize
        measured = f"{format_bytes(size)}, of which {format_bytes(free)} are free"
        remedy = f"Name a directory on a disk with {option}; in Docker, run it with --shm-size=8g"
        if free < MIN_FREE:
            what = f"{_mount_point(path)} is full: training cannot write to {path}"
            remedy += "; `podferry leftovers ls` shows what killed runs have left there"
            raise Refused.of(what, measured, remedy)
        if size <= SMALL_VOLUME:
            what = f"{_mount_point(path)} is small: training writes its files there"
            yield Problem(what, measured, remedy)


def _mount_point(path: Path) -> Path:
    return next(parent for parent in (path, *path.parents) if parent.is_mount())


def _left_behind(spec: FerrySpec, checkpoints: Path | None) -> Iterator[Problem]:
    """Leftovers of this lineage; what is in the run's own directory is uploaded by its agent."""
    left = leftovers_of(spec.checkpoints.uri, spec.lineage) if spec.checkpoints is not None else []
    for one in left:
        if one.checkpoints == str(checkpoints):
            continue
        what = f"a killed run of this lineage left what may not be durable: {', '.join(one.not_durable)}"
        remedy = f"To resume from it, stop this run and run `podferry leftovers upload {one.id}`"
        yield Problem(what, format_bytes(one.bytes), remedy)
