"""Makes what is held durable, one after the other: sends it, then commits it or offers it to other ranks.

The order is that in which checkpoints became whole, since a commit's number is its age. A pod that ends sends
its newest first, and leaves room in the numbers for the older ones.
"""

from __future__ import annotations

import asyncio

import structlog

from podferry.contract.commit import Commit
from podferry.contract.errors import Changed, FerryError, Superseded
from podferry.sidecar.checkpoint.pipeline.dependencies import Dependencies
from podferry.sidecar.checkpoint.pipeline.durability import DurabilityTracker
from podferry.sidecar.checkpoint.pipeline.gang_publisher import GangPublisher
from podferry.sidecar.checkpoint.pipeline.upload_queue import UploadQueue
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.checkpoint.upload.uploader import UploadResult

log = structlog.get_logger(__name__)

TELL_EVERY = 1.0
"""Seconds between two reports of an upload that is under way."""


class UploadWorker:
    """Empties the line.

    Args:
        gear: What sends, commits and remembers.
        line, book, progress: What is shared with the watch.
        offers: Takes parts of checkpoints that several ranks write, None where one pod writes all.
        retry_after: Seconds before one that failed is tried again.
    """

    def __init__(
        self,
        gear: Dependencies,
        line: UploadQueue,
        book: VersionRegistry,
        progress: DurabilityTracker,
        offers: GangPublisher | None,
        retry_after: float,
    ) -> None:
        self._gear, self._record = gear, gear.journal.checkpoints
        self._writer = gear.journal.agent.writer
        self._line, self._book, self._progress = line, book, progress
        self._offers = offers
        self._retry_after = retry_after
        self._sending: asyncio.Task[bool] | None = None
        self._sent_yet = True

    async def run(self) -> None:
        """Send until cancelled."""
        await self._gear.uploader.sweep(self._line.held())
        while True:
            pinned = await self._line.take()
            self._sending = asyncio.create_task(self._upload(pinned))
            again = await self._sent(self._sending)
            self._sending = None
            if again:
                self._line.put_back()
            else:
                self._line.done()
            self._progress.tell()
            if again and pinned.candidate.name in self._progress.failures:
                await asyncio.sleep(self._retry_after)

    def overtake(self) -> None:
        """Let the newest go before an older one that is being sent: what that has sent stays sent.

        One that is being committed is not stopped: that takes no time, and whether it is would not be known.
        """
        if self._sending is not None and not self._sent_yet and self._line.overtaken():
            self._sending.cancel()

    async def release(self, pinned: HeldCheckpoint) -> None:
        """Let a pin go, and what is remembered of its upload."""
        await self._gear.uploader.forget(pinned)
        pinned.release()

    async def _sent(self, sending: asyncio.Task[bool]) -> bool:
        """Wait for an upload; whether it must be tried again, as one that was overtaken must."""
        try:
            while not sending.done():
                await asyncio.wait({sending}, timeout=TELL_EVERY)
                self._progress.tell()
        except asyncio.CancelledError:
            sending.cancel()
            await asyncio.wait({sending})
            raise
        return sending.cancelled() or sending.result()

    async def _upload(self, pinned: HeldCheckpoint) -> bool:
        """Make one durable; whether it must be tried again."""
        name = pinned.candidate.name
        try:
            await self._deliver(pinned, await self._send(pinned))
        except (Changed, Superseded) as error:
            await self._abandon(pinned, error)
            return False
        except FerryError as error:
            log.warning("a checkpoint is not durable yet", name=name, reason=str(error))
            self._progress.failed(name, error)
            return True
        self._progress.failures.pop(name, None)
        return False

    async def _send(self, pinned: HeldCheckpoint) -> UploadResult:
        self._sent_yet = False
        try:
            return await self._gear.uploader.send(pinned)
        finally:
            self._sent_yet = True

    async def _abandon(self, pinned: HeldCheckpoint, error: FerryError) -> None:
        """Let one go that will not be committed as it is held."""
        log.info("abandoned", name=pinned.candidate.name, reason=str(error))
        if isinstance(error, Changed):
            self._book.forget(pinned.candidate)
            self._progress.unheld[pinned.candidate.name] = pinned.candidate.bytes
        self._progress.failures.pop(pinned.candidate.name, None)
        await self.release(pinned)
        self._gear.detector.wake()

    async def _deliver(self, pinned: HeldCheckpoint, shipment: UploadResult) -> None:
        """Commit what was sent, or offer it to the other ranks.

        Raises:
            FerryError: It is not committed, as far as anybody knows.
        """
        if shipment.earlier is not None:
            self._place(pinned, shipment.earlier)
            self._book.committed(pinned.candidate, shipment.earlier, pinned.completed_at)
        elif self._offers is not None:
            await self._offers.offer(pinned, shipment)
        else:
            commit = await self._commit(pinned, shipment)
            self._place(pinned, commit)
            self._book.committed(pinned.candidate, commit, pinned.completed_at)
            # A pod that ends has no time for it while older ones wait.
            if self._gear.retention is not None and not self._line.older_than(pinned):
                await self._gear.retention.after_commit(commit)
        await self.release(pinned)

    async def _commit(self, pinned: HeldCheckpoint, shipment: UploadResult) -> Commit:
        """Commit between the older ones, which may still wait, and the newer ones, which may have gone."""
        newer = [at for number, at in self._record.sequences.items() if number > pinned.number]
        return await self._gear.committer.commit(
            pinned.candidate.name,
            shipment.folder,
            shipment.files,
            reserve=self._line.older_than(pinned),
            below=min(newer, default=None),
            check=lambda: self._gear.uploader.recheck(shipment),
        )

    def _place(self, pinned: HeldCheckpoint, commit: Commit) -> None:
        """Remember its number while an older one waits; one that others gave says nothing of ages."""
        if commit.agent_id != self._writer:
            return
        oldest = min((held.number for held in self._line.held()), default=pinned.number)
        self._record.sequences = {
            number: at for number, at in self._record.sequences.items() if number > oldest
        }
        self._record.sequences[pinned.number] = commit.sequence
