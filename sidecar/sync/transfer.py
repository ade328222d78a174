"""Moves what a comparison has found: files, and the members of archives."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from podferry.contract.destination.sync_record import SyncedArchive, SyncedFile
from podferry.contract.errors import (
    BucketNotFound,
    Changed,
    Corrupt,
    FerryError,
    InvalidSpec,
    NotFound,
    Problem,
    Refused,
)
from podferry.sidecar.archive.archive_reader import ArchiveReader
from podferry.sidecar.archive.unpack_rules import Archive, NameRegistry
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.sidecar.runtime.cpu_limit import cores
from podferry.sidecar.sync.comparison import Comparison
from podferry.sidecar.sync.file_mover import FileMover
from podferry.sidecar.sync.member_uploader import MemberUploader
from podferry.sidecar.sync.plan import Move
from podferry.storage.server_copy import ServerCopy

CONCURRENT_FILES = 32
"""Small files are bound by latency, large ones by the bytes in flight."""
CONCURRENT_ARCHIVES = 4
"""Fewer on fewer cores: each takes one to decompress, and zstd up to 128 MiB for its window."""
PER_FILE = (Changed, Corrupt, InvalidSpec, NotFound, Refused)
"""Errors of one file, which do not stop the others; the rest concern the store."""

OnProgress = Callable[[int, int], None]
"""Called with (bytes done, bytes total)."""


class Transfer:
    """Moves what differs.

    Args:
        found: The comparison.
        settings: Attempts, and the length of a range of a large file.
        on_progress: See `OnProgress`.
        server_copy: As in `FileMover`.

    Attributes:
        moved: Names of the files that are at the destination now.
        bytes: Read for them from the source, or copied by the store.
        files, archives: What was moved, for the record.
    """

    def __init__(
        self,
        found: Comparison,
        settings: PrefetchSettings,
        on_progress: OnProgress,
        server_copy: ServerCopy | None = None,
    ) -> None:
        self._found, self._settings, self._on_progress = found, settings, on_progress
        source, target = found.dataset.store, found.target
        self._mover = FileMover(source, target, settings, self._add_bytes, server_copy)
        self._failed: dict[str, FerryError] = {}
        self._done = 0
        self.moved: list[str] = []
        self.bytes = 0
        self.files: list[SyncedFile] = []
        self.archives: dict[str, SyncedArchive] = {}

    @property
    def changed(self) -> bool:
        """Whether a file is no longer as it was listed: another listing may do better."""
        return any(isinstance(error, Changed | NotFound) for error in self._failed.values())

    def problems(self) -> tuple[Problem, ...]:
        """Why files were not moved, by name."""
        return tuple(problem for _, error in sorted(self._failed.items()) for problem in error.problems)

    async def run(self) -> None:
        """Move everything; errors of single files go to `problems`.

        Raises:
            FerryError: A store refused or did not respond. What was moved before is recorded.
        """
        plan, log = self._found.plan, self._found.log
        self._on_progress(0, plan.bytes)
        # The largest first: a large one must not start last.
        moves = sorted(plan.moves, key=lambda move: (-move.entry.size, move.entry.name))
        try:
            await for_each_limited(moves, self._move, CONCURRENT_FILES)
            await self._unpack_all(plan.unpacks)
        except BaseException:  # a cancellation, too
            with suppress(FerryError):  # the first error counts
                await log.flush()
            raise
        await log.flush()

    async def _move(self, move: Move) -> None:
        await self._guarded(move.entry.name, self._move_file(move))

    async def _move_file(self, move: Move) -> None:
        entry = move.entry
        there = await self._mover.move(entry)
        self.moved.append(entry.name)
        self.bytes += entry.size
        if entry.tag:
            self.files.append(SyncedFile(entry.name, entry.size, entry.tag, there.tag))
            self._found.log.add_file(self.files[-1])

    async def _unpack_all(self, archives: tuple[Archive, ...]) -> None:
        if not archives:
            return
        plan = self._found.plan
        names = NameRegistry(entry.name for entry in (*(move.entry for move in plan.moves), *plan.kept))
        reader = ArchiveReader(self._found.dataset.store, self._settings, self._add_archive_bytes)
        concurrency = min(CONCURRENT_ARCHIVES, cores())
        with ThreadPoolExecutor(concurrency, "unpack") as threads:

            async def unpack(archive: Archive) -> None:
                uploader = MemberUploader(archive, self._found.target, names, self._settings.attempts)
                await self._guarded(archive.name, self._unpack(uploader, reader, threads))

            await for_each_limited(archives, unpack, concurrency)

    async def _unpack(
        self, uploader: MemberUploader, reader: ArchiveReader, threads: ThreadPoolExecutor
    ) -> None:
        try:
            await reader.read(uploader, threads)
            await uploader.finish()
        finally:
            await uploader.abandon()
        archive, members = uploader.archive.entry, tuple(uploader.members)
        self.moved += [member.name for member in members]
        self.bytes += archive.size
        self.archives[archive.name] = SyncedArchive(archive, members)
        self._found.log.add_archive(self.archives[archive.name])

    async def _guarded(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except BucketNotFound:
            raise
        except PER_FILE as error:
            self._failed[name] = error
        await self._found.log.flush_if_due()

    def _add_archive_bytes(self, files: int, count: int) -> None:
        self._add_bytes(count)

    def _add_bytes(self, count: int) -> None:
        self._done += count
        self._on_progress(self._done, self._found.plan.bytes)
