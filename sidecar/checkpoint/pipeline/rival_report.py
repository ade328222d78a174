"""Shows another agent of the same lineage while training runs: in the log, the status and the metrics."""

from __future__ import annotations

import asyncio

import structlog

from podferry.contract.errors import Fenced, FerryError
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.rival_watch import RivalWatch
from podferry.sidecar.checkpoint.pipeline.durability_tracker import DurabilityTracker
from podferry.sidecar.checkpoint.pipeline.upload_queue import UploadQueue

log = structlog.get_logger(__name__)

EVENT = "another run of this lineage has started: the one that commits later takes over from the other"
REMEDY = "stop one of them, or give it another lineage: --lineage NAME, or podferry.io/lineage in a pod"


class RivalReport:
    """Looks for another agent every `seconds`, until one has taken over or this pod is ending."""

    def __init__(
        self, committer: Committer, tracker: DurabilityTracker, queue: UploadQueue, seconds: float
    ) -> None:
        self._watch, self._tracker = RivalWatch(committer), tracker
        self._queue, self._seconds, self._known = queue, seconds, ""

    async def run(self) -> None:
        """Look until another agent has taken over. A pod that is ending gives way: nothing is to be shown."""
        while not self._queue.newest_first:
            await asyncio.sleep(self._seconds)
            try:
                rival = await self._watch.look()
            except Fenced as fence:
                self._tracker.record_fence(fence)
                return
            except FerryError as error:
                log.debug("whether another agent runs is unknown", reason=str(error))
                continue
            text = str(rival) if rival is not None else ""
            if text and text != self._known and not self._queue.newest_first:
                log.warning(EVENT, other=text, remedy=REMEDY)
            self._known = text
            self._tracker.record_rival(text)
