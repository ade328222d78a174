"""Uploads a held checkpoint completely; the caller commits it.

The folder's name is a fingerprint of the content, taken in a first pass. The second pass, which sends, reads
each part into a buffer and compares it before any of it is sent. So an object in a folder always has the
bytes that the folder's name promises, whatever happens to the file meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import structlog

from podferry.contract.destination.commit import Commit, CommittedFile, checkpoint_folder
from podferry.contract.errors import Changed, FerryError
from podferry.sidecar.checkpoint.commit.committed_content import SameContent, is_among
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.tombstone_reader import names_being_removed
from podferry.sidecar.checkpoint.upload.dedup import DedupIndex
from podferry.sidecar.checkpoint.upload.file_copier import FileCopier
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

CONCURRENT_FILES = 32
"""Small files are bound by latency, large ones by the bytes in flight."""


@dataclass(frozen=True, slots=True)
class UploadResult:
    """A checkpoint whose objects all exist.

    Attributes:
        folder: Of its data, relative to the lineage.
        files: All of them, sorted by name.
        sent, referenced: Bytes that this call sent, and that the destination had already.
        existing: The commit that already has this very content; there is nothing to commit then.
    """

    folder: str
    files: tuple[CommittedFile, ...]
    sent: int = 0
    referenced: int = 0
    existing: Commit | None = None


class Uploader:
    """Uploads held checkpoints, one after the other; `limit` is in bytes per second, None for no limit."""

    def __init__(
        self,
        committer: Committer,
        journals: UploadJournals,
        settings: CheckpointSettings,
        limit: int | None = None,
        counters: UploadCounters | None = None,
    ) -> None:
        self._committer, self._journals = committer, journals
        self._multipart = committer.store.destination.multipart
        self._counters = counters or UploadCounters()
        # Under a limit a part is at most what is sent in a second: others notice bursts.
        self._part_bytes = min(settings.part_bytes, max(limit or settings.part_bytes, MIB))
        self._dedup = DedupIndex(committer)
        self._copier = FileCopier(committer.store, settings)
        self._sender = FileSender(committer, self._multipart, settings, RateLimiter(limit), self._counters)
        self._threads = settings.threads

    async def send(self, held: HeldCheckpoint) -> UploadResult:
        """Upload all of it, or what an earlier attempt has left.

        Raises:
            Changed: The files changed in place; the upload is aborted.
            Refused: One of them is not readable.
            FerryError: The store's, after all attempts. The next call resumes.
        """
        journal, existing = await self._prepare(held)
        if existing is not None:
            log.info("already durable", name=existing.name, sequence=existing.sequence)
            folder, count = journal.plan.folder, existing.bytes
            self._counters.referenced += count
            return UploadResult(folder, existing.files, referenced=count, existing=existing)
        try:
            return await self._upload(held, journal)
        except Changed:
            await self._abort(journal)
            raise

    async def recheck(self, result: UploadResult) -> None:
        """To be called just before a result is committed.

        Raises:
            Unavailable: What it references has been removed meanwhile: `send` uploads it.
        """
        await self._dedup.check_still_referenced(result.folder, result.files)

    async def forget(self, held: HeldCheckpoint) -> None:
        """Remove the journal of a hold that is released, and abort what is not complete."""
        await self._forget(held.number)

    async def sweep(self, held: Iterable[HeldCheckpoint]) -> None:
        """Forget all uploads except those of these holds; what an earlier worker left is aborted."""
        known = {one.number for one in held}
        for number in self._journals.numbers():
            if number not in known:
                await self._forget(number)

    async def _forget(self, number: int) -> None:
        journal = self._journals.load(number)
        if journal is not None:
            await self._abort(journal)

    async def _abort(self, journal: UploadJournal) -> None:
        """Abort as far as the store answers; the bucket's own rules end what is left."""
        for file, upload_id in journal.uploads.items():
            if self._multipart is None:
                break
            try:
                name = self._committer.store.path(journal.plan.target(file))
                await self._multipart.abort(name, upload_id)
            except FerryError as error:
                log.info("an unfinished upload stays at the destination", file=file, reason=str(error))
        journal.remove()

    async def _prepare(self, held: HeldCheckpoint) -> tuple[UploadJournal, Commit | None]:
        """The journal of an earlier attempt or a new one; and the commit of this very content, if any.

        Commits are read before tombstones: `podferry.sidecar.checkpoint.commit.garbage_collector` says why.
        """
        found = self._journals.load(held.number)
        if found is not None and found.plan.matches(held):
            existing = (await self._same_content(held, found.plan.folder)).commit
            if existing is not None or not is_among(found.plan.folder, await self._being_removed()):
                return found, existing
        if found is not None:
            await self._abort(found)
        files = await self._fingerprint(held)
        content = [(file.name, file.size, file.xxh128) for file in files]
        folder = checkpoint_folder(held.candidate.name, content)
        same = await self._same_content(held, folder)
        if same.commit is None:
            folder = await self._folder(folder, listed=same.listed)
        return self._journals.create(held.number, UploadPlan(folder, tuple(files))), same.commit

    async def _same_content(self, held: HeldCheckpoint, folder: str) -> SameContent:
        candidate = held.candidate
        return await self._committer.content.find(candidate.name, folder, candidate.changed_ns)

    async def _folder(self, folder: str, *, listed: bool) -> str:
        """Where to upload what belongs in `folder`: elsewhere if a commit lists it or it is being removed."""
        removed, content = await self._being_removed(), self._committer.content
        if not listed and not is_among(folder, removed):
            return folder
        return await content.unused_folder(folder, self._committer.identity.agent_id, removed)

    async def _being_removed(self) -> set[str]:
        return await names_being_removed(self._committer.store)

    async def _fingerprint(self, held: HeldCheckpoint) -> list[PlannedFile]:
        """The first pass."""
        files: list[PlannedFile] = []

        async def plan(file: tuple[str, FileIdentity]) -> None:
            files.append(await self._plan_file(held, *file))

        await for_each_limited(held.files, plan, self._threads)
        return sorted(files, key=lambda file: file.name)

    async def _plan_file(self, held: HeldCheckpoint, name: str, identity: FileIdentity) -> PlannedFile:
        part_bytes = self._part_bytes
        if self._multipart is not None:
            part_bytes = part_bytes_for(identity.size, part_bytes, self._multipart)
        reader = VerifiedReader(held.directory / name, identity, part_bytes)
        found = await asyncio.get_running_loop().run_in_executor(self._sender.threads, reader.fingerprint)
        return PlannedFile(name, identity, part_bytes, found.xxh128, found.parts)

    async def _upload(self, held: HeldCheckpoint, journal: UploadJournal) -> UploadResult:
        plan, sent_before = journal.plan, self._counters.sent
        self._counters.begin()
        committed = await self._dedup.known()
        known = {file: committed.get((file.size, file.xxh128), plan.target(file.name)) for file in plan.files}
        references = {file: name for file, name in known.items() if name != plan.target(file.name)}
        copies = await self._copier.copy(journal, references)
        for file in copies.made | copies.damaged:
            del references[file]
        elsewhere = references.keys() | copies.made
        await self._send_files(held, journal, [file for file in plan.files if file not in elsewhere])
        # References are checked last: their objects may have been removed meanwhile.
        gone = await self._gone(references)
        await self._send_files(held, journal, gone)
        for file in gone:
            del references[file]
        referenced = sum(file.size for file in references.keys() | copies.made)
        self._counters.referenced += referenced
        objects = {file: references.get(file, plan.target(file.name)) for file in plan.files}
        files = (CommittedFile(file.name, name, file.size, file.xxh128) for file, name in objects.items())
        return UploadResult(plan.folder, tuple(files), self._counters.sent - sent_before, referenced)

    async def _gone(self, references: Mapping[PlannedFile, str]) -> list[PlannedFile]:
        gone: list[PlannedFile] = []

        async def check(file: PlannedFile) -> None:
            if not await self._dedup.exists(references[file], file.size):
                gone.append(file)

        await for_each_limited(list(references), check, CONCURRENT_FILES)
        return gone

    async def _send_files(
        self, held: HeldCheckpoint, journal: UploadJournal, files: list[PlannedFile]
    ) -> None:
        async def send(file: PlannedFile) -> None:
            """Upload a file, unless the journal says that it was sent and it is still there."""
            if file.name in journal.sent:
                if await self._dedup.exists(journal.plan.target(file.name), file.size):
                    return
                journal.forget(file.name)
            reader = VerifiedReader(held.directory / file.name, file.identity, file.part_bytes)
            await self._sender.send(FileUpload(file, reader, journal))

        await for_each_limited(files, send, CONCURRENT_FILES)
