"""Sends a pinned checkpoint: whole at its place, or not at all. Committing it is the caller's.

The folder's name is a fingerprint of the content, taken in a first pass. The second pass, which sends, reads
each part into a buffer and compares it before a byte of it goes: an object below a folder always holds just
the bytes that the folder's name promises, whatever happened to the file meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import structlog

from podferry.contract.commit import Commit, CommittedFile, checkpoint_folder
from podferry.contract.errors import Changed, FerryError
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.tombstones import names_being_removed
from podferry.sidecar.checkpoint.upload.dedup import DedupIndex
from podferry.sidecar.checkpoint.upload.file_sender import FileSender, FileUpload
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.checkpoint.upload.rate_limiter import RateLimiter
from podferry.sidecar.checkpoint.upload.upload_journal import (
    PlannedFile,
    UploadJournal,
    UploadJournals,
    UploadPlan,
)
from podferry.sidecar.checkpoint.upload.verified_reader import VerifiedReader
from podferry.sidecar.config.tuning import MIB, CheckpointSettings
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.sidecar.state.upload_counters import UploadCounters
from podferry.storage.multipart import part_bytes_for

log = structlog.get_logger(__name__)

REQUESTS = 32
"""Files at once: small ones are bound by latency, large ones by the bytes in flight."""


@dataclass(frozen=True, slots=True)
class UploadResult:
    """A checkpoint whose objects are all there.

    Attributes:
        folder: Of its data, relative to the lineage.
        files: All of them, sorted by name.
        sent: Bytes that this call sent.
        referenced: Bytes that lay there already, in earlier checkpoints' folders or as the whole of one.
        earlier: The commit that made this very content real; there is nothing to commit then.
    """

    folder: str
    files: tuple[CommittedFile, ...]
    sent: int = 0
    referenced: int = 0
    earlier: Commit | None = None


class Uploader:
    """Brings pinned checkpoints to the destination, one after the other.

    Args:
        committer: Of the lineage.
        ledgers: What survives a restart of the worker.
        settings: Sizes, threads and attempts.
        limit: Bytes a second; None for as many as there are.
        meter: Told of all that is moved.
    """

    def __init__(
        self,
        committer: Committer,
        ledgers: UploadJournals,
        settings: CheckpointSettings,
        limit: int | None = None,
        meter: UploadCounters | None = None,
    ) -> None:
        self._committer, self._ledgers = committer, ledgers
        self._parts = committer.reader.store.destination.multipart
        self._meter = meter or UploadCounters()
        # Under a cap a part is at most what goes in a second: what comes in bursts is felt by others.
        self._part_bytes = min(settings.part_bytes, max(limit or settings.part_bytes, MIB))
        self._references = DedupIndex(committer)
        self._sender = FileSender(committer, self._parts, settings, RateLimiter(limit), self._meter)
        self._threads = settings.threads

    async def send(self, pinned: HeldCheckpoint) -> UploadResult:
        """Bring all of it there, or what an earlier try has left to do.

        Raises:
            Changed: The files changed in place; what was sent has been given up.
            Refused: One of them cannot be read.
            FerryError: The store's, after the attempts are spent. The next try goes on from here.
        """
        ledger, earlier = await self._ledger(pinned)
        if earlier is not None:
            log.info("already durable", name=earlier.name, sequence=earlier.sequence)
            self._meter.referenced += earlier.bytes
            return UploadResult(ledger.plan.folder, earlier.files, referenced=earlier.bytes, earlier=earlier)
        try:
            return await self._ship(pinned, ledger)
        except Changed:
            await self._give_up(ledger)
            raise

    async def recheck(self, shipment: UploadResult) -> None:
        """To be called just before a shipment is committed.

        Raises:
            Unavailable: What it refers to has been removed meanwhile: `send` brings it.
        """
        await self._references.still_listed(shipment.folder, shipment.files)

    async def forget(self, pinned: HeldCheckpoint) -> None:
        """A pin is released: remove what was kept of its upload, and give up what is not complete."""
        await self._forget(pinned.number)

    async def sweep(self, held: Iterable[HeldCheckpoint]) -> None:
        """Forget all uploads but those of these pins; what an earlier worker left is given up."""
        known = {pinned.number for pinned in held}
        for number in self._ledgers.numbers():
            if number not in known:
                await self._forget(number)

    async def _forget(self, number: int) -> None:
        ledger = self._ledgers.find(number)
        if ledger is not None:
            await self._give_up(ledger)

    async def _give_up(self, ledger: UploadJournal) -> None:
        """Abort, as far as the store answers: what it keeps of an upload ends by the bucket's own rules."""
        for file, upload in ledger.uploads.items():
            if self._parts is None:
                break
            try:
                await self._parts.abort(self._committer.reader.store.path(ledger.plan.target(file)), upload)
            except FerryError as error:
                log.info("an unfinished upload stays at the destination", file=file, reason=str(error))
        ledger.remove()

    async def _ledger(self, pinned: HeldCheckpoint) -> tuple[UploadJournal, Commit | None]:
        """What an earlier try has done, or a new plan; and the commit of this very content, if any.

        The commits are looked at first, then the removals under way:
        `podferry.sidecar.checkpoint.commit.garbage_collector` says why.
        """
        name, found = pinned.candidate.name, self._ledgers.find(pinned.number)
        if found is not None and found.plan.fits(pinned):
            earlier = await self._committer.earlier(name, found.plan.folder)
            if earlier is not None or not await self._busy(found.plan.folder):
                return found, earlier
        if found is not None:
            await self._give_up(found)
        files = await self._read(pinned)
        folder = checkpoint_folder(name, [(file.name, file.size, file.xxh128) for file in files])
        earlier = await self._committer.earlier(name, folder)
        if earlier is None and await self._busy(folder):
            folder = f"{folder}-{self._committer.identity.agent_id[:8]}"
        return self._ledgers.new(pinned.number, UploadPlan(folder, tuple(files))), earlier

    async def _read(self, pinned: HeldCheckpoint) -> list[PlannedFile]:
        """The first pass."""
        files: list[PlannedFile] = []

        async def plan(held: tuple[str, FileIdentity]) -> None:
            files.append(await self._planned(pinned, *held))

        await for_each_limited(pinned.held, plan, self._threads)
        return sorted(files, key=lambda file: file.name)

    async def _busy(self, folder: str) -> bool:
        """Whether somebody is just removing what lies in a folder."""
        removed = await names_being_removed(self._committer.reader.store)
        return any(name.startswith(f"{folder}/") for name in removed)

    async def _planned(self, pinned: HeldCheckpoint, name: str, identity: FileIdentity) -> PlannedFile:
        part_bytes = self._part_bytes
        if self._parts is not None:
            part_bytes = part_bytes_for(identity.size, part_bytes, self._parts)
        reading = VerifiedReader(pinned.folder / name, identity, part_bytes)
        seen = await asyncio.get_running_loop().run_in_executor(self._sender.threads, reading.fingerprint)
        return PlannedFile(name, identity, part_bytes, seen.xxh128, seen.parts)

    async def _ship(self, pinned: HeldCheckpoint, ledger: UploadJournal) -> UploadResult:
        plan, before = ledger.plan, self._meter.sent
        self._meter.begin()
        known = await self._references.known()
        places = {file: known.get((file.size, file.xxh128), plan.target(file.name)) for file in plan.files}
        relied = {file: place for file, place in places.items() if place != plan.target(file.name)}
        await self._send(pinned, ledger, [file for file in places if file not in relied])
        # What is relied on is looked at last: somebody may have removed it meanwhile.
        gone = await self._gone(relied)
        await self._send(pinned, ledger, gone)
        places |= {file: plan.target(file.name) for file in gone}
        referenced = sum(file.size for file in relied) - sum(file.size for file in gone)
        self._meter.referenced += referenced
        files = (CommittedFile(file.name, place, file.size, file.xxh128) for file, place in places.items())
        return UploadResult(plan.folder, tuple(files), self._meter.sent - before, referenced)

    async def _gone(self, places: Mapping[PlannedFile, str]) -> list[PlannedFile]:
        gone: list[PlannedFile] = []

        async def look(file: PlannedFile) -> None:
            if not await self._references.stands(places[file], file.size):
                gone.append(file)

        await for_each_limited(list(places), look, REQUESTS)
        return gone

    async def _send(self, pinned: HeldCheckpoint, ledger: UploadJournal, files: list[PlannedFile]) -> None:
        async def send(file: PlannedFile) -> None:
            if file.name in ledger.done:
                if await self._references.stands(ledger.plan.target(file.name), file.size):
                    return
                ledger.lost(file.name)
            reading = VerifiedReader(pinned.folder / file.name, file.identity, file.part_bytes)
            await self._sender.send(FileUpload(file, reading, ledger))

        await for_each_limited(files, send, REQUESTS)
