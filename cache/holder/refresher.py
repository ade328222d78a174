"""Keeps a stage current: lists its source again, and fetches what differs next to what is served."""

from __future__ import annotations

import math
from contextlib import suppress

import structlog

from podferry.cache.holder.holder_stage import HolderStage
from podferry.cache.holder.next_version import fetch_next
from podferry.cache.peers.waiting import wait_for
from podferry.contract.errors import Changed, FerryError

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
            return await fetch_next(stage)
        log.info("the source has changed meanwhile: it is listed again", uri=stage.uri)
    return await fetch_next(stage)
