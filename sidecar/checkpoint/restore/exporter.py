"""Copies the files of one commit to a folder of any store, under their own names.

    plan       which files the folder has already, equal or not, and which objects the commit has lost
    transfer   each missing file: by the store itself if both places are one store, else through this process
    check      the folder has all files, and nothing else

An object appears only when all of its bytes have the commit's checksum: what is read is compared while it is
written, and a difference abandons the write. A call that failed or was killed is repeated: it finds what it
has written before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import xxhash

from podferry.contract.destination.commit import Commit, CommittedFile
from podferry.contract.errors import Changed, Corrupt, FerryError, Problem, Refused
from podferry.contract.manifest import Entry
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.content_verifier import ContentVerifier
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.config.tuning import MIB, PrefetchSettings
from podferry.sidecar.fetch.read_ahead import READ_AHEAD, read_ahead
from podferry.sidecar.runtime.byte_semaphore import ByteSemaphore
from podferry.sidecar.runtime.concurrency import for_each_limited, merge_errors
from podferry.sidecar.runtime.retry import retry
from podferry.storage.server_copy import ServerCopy

SETTINGS = PrefetchSettings()
CONCURRENT_FILES = 32
"""Small files are bound by latency, large ones by `BUFFER_BYTES`."""
BUFFER_BYTES = 128 * MIB
"""Bytes in flight that were read; in addition an engine holds the parts that it sends."""
MAX_NAMES_SHOWN = 5

OnProgress = Callable[[int, int], None]
"""Called with (bytes done, bytes total)."""


@dataclass(slots=True)
class ExportResult:
    """What an export did, as names of files.

    Attributes:
        kept: Were there already, equal.
        copied: The store has copied them.
        sent: Went through this process.
    """

    kept: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)


class Exporter:
    """Exports commits of one lineage.

    Args:
        source: The lineage.
        target: The folder: `LineageStore` is a folder of a store.
        server_copy: Copies by complete keys, if source and target are one store that can copy.
        on_progress: See `OnProgress`.
    """

    def __init__(
        self,
        source: LineageStore,
        target: LineageStore,
        server_copy: ServerCopy | None = None,
        on_progress: OnProgress = lambda done, total: None,
    ) -> None:
        self._source, self._target, self._server_copy = source, target, server_copy
        self._on_progress, self._done, self._total = on_progress, 0, 0
        self._in_flight = ByteSemaphore(BUFFER_BYTES)

    async def export(self, commit: Commit) -> ExportResult:
        """Export a commit with one file of each name: see `for_rank`.

        Raises:
            Refused: The folder has other content, or objects of the commit are missing: nothing was written.
            FerryError: With all files that could not be exported; the next call continues.
        """
        self._done, self._total = 0, commit.bytes
        kept = await self._plan(commit)
        result = ExportResult(kept=sorted(file.name for file in kept))
        self._add(sum(file.size for file in kept))
        errors: list[FerryError] = []

        async def transfer(file: CommittedFile) -> None:
            try:
                (result.copied if await self._transfer(file) else result.sent).append(file.name)
            except FerryError as error:
                errors.append(error)

        missing = [file for file in commit.files if file not in kept]
        await for_each_limited(missing, transfer, CONCURRENT_FILES)
        if error := merge_errors(errors):
            raise error
        Changed.raise_any(await self._unfinished(commit))
        return result

    async def _plan(self, commit: Commit) -> set[CommittedFile]:
        """The files that the folder has already; raises if it has anything else."""
        there = {entry.name: entry.size async for entry in self._target.entries()}
        problems = await CommitReader(self._source).missing_objects(commit)
        if foreign := sorted(there.keys() - {file.name for file in commit.files}):
            problems.append(self._other_content(foreign))
        present = [file for file in commit.files if file.name in there]
        equal = await self._equal([file for file in present if there[file.name] == file.size])
        problems += [self._another_version(file.name) for file in present if file not in equal]
        Refused.raise_any(problems)
        return equal

    async def _equal(self, files: Sequence[CommittedFile]) -> set[CommittedFile]:
        """The files whose bytes in the folder are the committed ones."""
        verifier, equal = ContentVerifier(), set()

        async def compare(file: CommittedFile) -> None:
            if await verifier.find_damage(self._target, _at_its_name(file)) is None:
                equal.add(file)

        await for_each_limited(files, compare, CONCURRENT_FILES)
        return equal

    def _other_content(self, names: Sequence[str]) -> Problem:
        more = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
        measured = f"{', '.join(names[:MAX_NAMES_SHOWN])}{more}"
        return Problem(f"{self._target.uri} has other content", measured, "Export to an empty folder")

    def _another_version(self, name: str) -> Problem:
        what = f"{self._target.uri_of(name)} is there already, with other bytes"
        return Problem(what, "", "Remove it, or export to an empty folder")

    async def _transfer(self, file: CommittedFile) -> bool:
        """Export one file; returns whether the store copied it."""
        server_copy = self._server_copy
        if server_copy is not None and file.size <= server_copy.max_bytes:
            source, target = self._source.uri_of(file.object).key, self._target.uri_of(file.name).key
            copy = await retry(SETTINGS.attempts, lambda: server_copy.copy(source, target))
            if copy.size != file.size:
                raise Corrupt.of(f"{self._source.uri_of(file.object)} has changed", f"{copy.size} bytes")
            self._add(file.size)
            return True
        reserved = min(file.size, (READ_AHEAD + 2) * SETTINGS.range_bytes)
        await self._in_flight.acquire(reserved)
        try:
            await retry(SETTINGS.attempts, lambda: self._send(file))
        finally:
            self._in_flight.release(reserved)
        return False

    async def _send(self, file: CommittedFile) -> None:
        read, loop = 0, asyncio.get_running_loop()

        def add(count: int) -> None:
            nonlocal read
            read += count
            self._add(count)

        entry = await self._source.stat(file.object)
        try:
            await self._target.write(file.name, self._body(file, entry, loop, add))
        except BaseException:
            self._add(-read)
            raise

    def _body(
        self, file: CommittedFile, entry: Entry, loop: asyncio.AbstractEventLoop, add: Callable[[int], None]
    ) -> Iterator[bytes]:
        """The bytes, read ahead on the loop, for an engine that takes them in a thread.

        Raises:
            Corrupt: At the end, if they are not the committed ones: the engine then writes nothing.
        """
        digest = xxhash.xxh3_128()

        def read(start: int, length: int) -> Coroutine[Any, Any, memoryview]:
            return self._source.read(entry.name, start, length, entry.tag)

        for data in read_ahead(read, entry.size, SETTINGS.range_bytes, loop):
            digest.update(data)
            loop.call_soon_threadsafe(add, len(data))
            yield bytes(data)
        if digest.hexdigest() != file.xxh128:
            measured = f"xxh128 {digest.hexdigest()}, the commit says {file.xxh128}"
            raise Corrupt.of(f"{self._source.uri_of(file.object)} is damaged", measured, "Export another one")

    async def _unfinished(self, commit: Commit) -> list[Problem]:
        """What the folder lacks, after everything was transferred: others may use it, too."""
        found = {entry.name: entry.size async for entry in self._target.entries()}
        return [
            Problem(f"{self._target.uri_of(file.name)} is not there", "", "Run the same command again")
            for file in commit.files
            if found.get(file.name) != file.size
        ]

    def _add(self, count: int) -> None:
        self._done += count
        self._on_progress(self._done, self._total)


def _at_its_name(file: CommittedFile) -> CommittedFile:
    """The file as an object of the target."""
    return CommittedFile(file.name, file.name, file.size, file.xxh128)
