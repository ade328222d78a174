"""Puts the next version of a stage together next to what is in place, and serves it instead."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from podferry.contract.errors import Refused
from podferry.contract.manifest import Manifest, differences
from podferry.contract.tmpfs_cost import allocated_bytes
from podferry.sidecar.dataset.dataset_job import DatasetJob, PlannedDataset
from podferry.sidecar.dataset.fit_check import fit_problems

if TYPE_CHECKING:
    from podferry.cache.holder.holder_stage import HolderStage

log = structlog.get_logger(__name__)


class NoRoom(Refused):
    """There may be room once an earlier version is read no more."""


async def fetch_next(stage: HolderStage) -> None:
    """List the source, and serve what it has now if that differs from what is served.

    Raises:
        NoRoom: It does not fit next to what is in place, which is read.
        FerryError: It cannot be fetched.
    """
    files = stage.versions.files
    job = stage.make_job(files.next_root, files.next_private)
    try:
        manifest = await job.manifest()
        current = stage.complete
        if current is None or current.digest != manifest.digest:
            await _replace(stage, job, manifest)
    finally:
        await job.close()


async def _replace(stage: HolderStage, job: DatasetJob, manifest: Manifest) -> None:
    stage.check(manifest)
    planned, shown, files = await _planned(stage, job, manifest), stage.shown, stage.versions.files
    stage.shown = job
    try:
        await stage.shared.fetch(planned, files.next_private)
        version = await stage.recorded(manifest, files.next_root, files.next_private)
    except BaseException:
        stage.shown = shown
        raise
    changed = differences(
        stage.complete.document.manifest.entries if stage.complete else (), manifest.entries
    )
    stage.serve_next(version)
    job.progress.directory, job.status.path = stage.root, str(stage.root)
    log.info("another version is served", uri=stage.uri, differs=str(changed))


async def _planned(stage: HolderStage, job: DatasetJob, manifest: Manifest) -> PlannedDataset:
    """Plan the next version; the current one is dropped only if both do not fit and nobody reads it.

    Raises:
        NoRoom: It does not fit.
        Refused: Its directories cannot be made.
    """
    while True:
        held = stage.complete.document if stage.complete is not None else None
        try:
            await asyncio.to_thread(stage.versions.files.prepare, held, manifest)
        except OSError as error:
            what = "the next version cannot be put together"
            raise Refused.of(what, str(error), "Give the volume more space") from error
        planned = await stage.plan(job)
        problems = fit_problems([planned.sized], in_pod=False)
        if not problems:
            return planned
        if not await stage.make_room() and not await _drop_unread(stage, planned):
            raise NoRoom(*problems)


async def _drop_unread(stage: HolderStage, planned: PlannedDataset) -> bool:
    """Remove what is in place, if nobody reads it and the next version fits then; whether that is so."""
    if stage.versions.is_empty or stage.versions.is_read:
        return False
    if fit_problems([planned.sized.with_room(_freed(stage, planned))], in_pod=False):
        return False
    log.warning("the next version does not fit next to this one, which nobody reads: it is removed first")
    await asyncio.to_thread(stage.drop)
    return True


def _freed(stage: HolderStage, planned: PlannedDataset) -> int:
    """Bytes that are free without what is in place. What is left of another dataset is not shared."""
    if stage.complete is None:
        return stage.versions.files.served_bytes()
    own = set(stage.complete.document.manifest.entries).difference(planned.manifest.entries)
    return allocated_bytes(entry.size for entry in own)
