"""Frees what other holders have left in the same memory, if space is needed."""

from __future__ import annotations

import shutil
from pathlib import Path

import structlog

from podferry.cache.shared_stage.place import HOLDER_LOCK
from podferry.cache.shared_stage.reader_locks import held_locks, readers_dir
from podferry.sidecar.runtime.file_lock import release, try_acquire

log = structlog.get_logger(__name__)
PRIVATE_SUFFIX = ".podferry"


def free_oldest(place: Path) -> bool:
    """Remove the oldest stage that has no holder and no reader; whether there was one. Blocks.

    Args:
        place: The directory of the stages.
    """
    private = sorted(place.glob(f"*{PRIVATE_SUFFIX}"), key=lambda path: path.stat().st_mtime)
    return any(map(_free, private))


def _free(private: Path) -> bool:
    lock = try_acquire(private / HOLDER_LOCK)
    if lock is None:
        return False
    try:
        if held_locks(readers_dir(private)):
            return False
        stage = private.with_name(private.name.removesuffix(PRIVATE_SUFFIX))
        shutil.rmtree(stage, ignore_errors=True)
        shutil.rmtree(private)
        log.warning(
            "a shared dataset without holder and readers is removed: its space is needed", stage=str(stage)
        )
        return True
    finally:
        release(lock)
