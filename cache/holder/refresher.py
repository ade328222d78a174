"""Keeps a stage current: lists its source again, and fetches what differs next to what is served."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress

import structlog

from podferry.cache.holder.holder_stage import HolderStage
from podferry.cache.peers.waiting import wait_for
from podferry.contract.errors import Changed, FerryError, Refused
from podferry.contract.manifest import Manifest, differences
from podferry.contract.tmpfs_cost import allocated_bytes
from podferry.sidecar.dataset.dataset_job import DatasetJob, PlannedDataset
from podferry.sidecar.dataset.fit_check import fit_problems

log = structlog.get_logger(__name__)
SWEEP_SECONDS = 10.0
"""Between two looks whether earlier versions are still read."""
MAX_CHANGES = 3
"""Of the source during one refresh: a file that always changes must not be fetched without a pause."""
RETRY_SECONDS = 60.0
"""After a refresh that has failed: readers may have left that kept the next version from its space."""


async def keep_current(stage: HolderStage, seconds: float | None) -> None:
    """List the source of a stage when somebody asks for it, and take what has changed; never returns.

    A stage that was found is compared with its source at once.

    Args:
        stage: It has been filled.
        seconds: After how many the source is listed in any case; None for never.
    """
    listed_at = -math.inf if stage.adopted else stage.now()
    if stage.adopted:
        stage.ask_refresh()
    while True:
        due = listed_at + _pause_seconds(stage, seconds) - stage.now()
        await wait_for(stage.asked, min(max(due, 0.0), SWEEP_SECONDS))
        if stage.asked.is_set() or due <= 0 or stage.complete is None:  # readers wait after a drop
            listed_at = stage.now()
            await refresh(stage)
        await stage.versions.remove_unread()


def _pause_seconds(stage: HolderStage, wanted: float | None) -> float:
    """Between two lists of the source, if nobody asks for one."""
    seconds = math.inf if wanted is None else wanted
    return seconds if stage.refresh_failure is None else min(seconds, RETRY_SECONDS)


async def refresh(stage: HolderStage) -> None:
    """Serve what the source has now; what is served stays if that cannot be fetched."""
    stage.asked.clear()
    if stage.is_frozen:
        return
    stage.refreshing, stage.refresh_failure = True, None
    try:
        await _update_to_the_last(stage)
    except FerryError as error:
        stage.refresh_failure = error
        log.warning("what has changed at the source cannot be served", uri=stage.uri, reason=str(error))
    else:
        stage.adopted = False
    finally:
        stage.refreshing = stage.asked.is_set()


async def _update_to_the_last(stage: HolderStage) -> None:
    """List again if the source changes while a version is fetched."""
    for _ in range(MAX_CHANGES - 1):
        with suppress(Changed):
            return await _update(stage)
        log.info("the source has changed meanwhile: it is listed again", uri=stage.uri)
    return await _update(stage)


async def _update(stage: HolderStage) -> None:
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
        Refused: It does not fit.
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
            raise Refused(*problems)


async def _drop_unread(stage: HolderStage, planned: PlannedDataset) -> bool:
    """Remove the current version, if nobody reads it and the next one fits then; whether that is so."""
    if stage.complete is None or stage.versions.is_read:
        return False
    own = set(stage.complete.document.manifest.entries).difference(planned.manifest.entries)
    freed = allocated_bytes(entry.size for entry in own)
    if fit_problems([planned.sized.with_room(freed)], in_pod=False):
        return False
    log.warning("the next version does not fit next to this one, which nobody reads: it is removed first")
    await asyncio.to_thread(stage.drop)
    return True
