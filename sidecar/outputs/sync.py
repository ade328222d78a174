"""Syncs a directory to the destination in rounds: each uploads what has changed since the last one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from podferry.contract.errors import Changed, FerryError, Problem, TemporaryError
from podferry.sidecar.outputs.reread import Reread, Sent, reread
from podferry.sidecar.outputs.scan import CHUNK_BYTES, OutputScan, StableReader, sample_names, scan_outputs
from podferry.sidecar.runtime.concurrency import for_each_limited
from podferry.sidecar.runtime.retry import retry
from podferry.storage.store import Store

CONCURRENT_FILES = 4
"""Small files, which latency bounds. Larger ones go one at a time: an engine buffers two parts of each."""


class SyncFailure(NamedTuple):
    """Why a file was not sent. Does not keep the error, which would hold the file's bytes."""

    problems: tuple[Problem, ...]
    temporary: bool


@dataclass(slots=True)
class SyncRound:
    """One scan of the directory, and its results.

    Attributes:
        scan: The directory's contents.
        failed: Files that could not be sent, and why.
        changed: Files that changed while they were read.
        sent: Number of files sent.
    """

    scan: OutputScan = field(default_factory=lambda: OutputScan({}))
    failed: dict[str, SyncFailure] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    sent: int = 0

    @property
    def retryable(self) -> bool:
        """Whether another round may do better."""
        return bool(self.changed) or any(failure.temporary for failure in self.failed.values())

    def failures(self) -> tuple[Problem, ...]:
        """Why files could not be sent: each reason once, with the files' names."""
        names: dict[tuple[str, str, str], list[str]] = {}
        for name, failure in self.failed.items():
            for problem in failure.problems:
                names.setdefault((problem.what, problem.measured, problem.remedy), []).append(name)
        return tuple(
            Problem(what, ": ".join(filter(None, (sample_names(which), measured))), remedy)
            for (what, measured, remedy), which in names.items()
        )


class OutputSync:
    """Uploads new and changed files of a directory.

    Args:
        root: The directory.
        connect: Returns the store at the destination.
        attempts: Per file, on top of the engine's own retries.

    Attributes:
        last: The current or last round.
    """

    def __init__(self, root: Path, connect: Callable[[], Store], attempts: int) -> None:
        self._root, self._connect, self._attempts = root, connect, attempts
        self._sent: dict[str, Sent] = {}
        self._round_lock, self._large_file_lock = asyncio.Lock(), asyncio.Lock()
        self.last = self._before = SyncRound()

    async def round(self) -> SyncRound:
        """Upload what the destination does not have in its current version.

        The smallest files go first: if time is short, most of them are uploaded, and results are small while
        profiles and media are large.
        """
        async with self._round_lock:
            try:
                scan = await asyncio.to_thread(scan_outputs, self._root)
            except OSError as error:
                unread = Problem(f"the output directory {self._root} cannot be read", str(error.strerror))
                self.last = SyncRound(failed={".": SyncFailure((unread,), temporary=False)})
                return self.last
            self._before, self.last = self.last, SyncRound(scan)
            files = scan.files
            outdated = (name for name in files if not self._is_sent(name))
            names = sorted(outdated, key=lambda name: (files[name].size, name))
            await for_each_limited(names, self._upload, CONCURRENT_FILES)
            return self.last

    def _is_sent(self, name: str) -> bool:
        """Whether the destination has the scanned version, as far as its identity shows."""
        sent = self._sent.get(name)
        return sent is not None and sent.conclusive and sent.identity == self.last.scan.files[name]

    async def reread(self, since: float, until: float) -> Reread:
        """Read again what was last read before `since`; the next round sends what differs.

        Both are monotonic seconds. Without `until`, reading many large files from a disk could take minutes.
        """
        async with self._round_lock:
            files = self.last.scan.files
            before = {
                name: sent for name, sent in self._sent.items() if sent.read_at < since and name in files
            }
            now = time.monotonic()
            found = await asyncio.to_thread(reread, self._root, before, until)
            for name in found.changed:
                del self._sent[name]
            self._sent |= {name: before[name]._replace(read_at=now) for name in found.same}
            return found

    def uploaded(self) -> dict[str, int]:
        """Sizes of the files that the destination has in the version of the last scan, by name."""
        scanned = self.last.scan.files
        sent = {name: one.identity for name, one in self._sent.items()}
        return {name: found.size for name, found in scanned.items() if sent.get(name) == found}

    def failures(self) -> tuple[Problem, ...]:
        """Why files are not at the destination; for those this round has not tried yet, in the last one."""
        uploaded = self.uploaded()
        left = self.last.scan.files.keys() - uploaded.keys() - self.last.changed
        before = {name: failure for name, failure in self._before.failed.items() if name in left}
        return SyncRound(failed=before | self.last.failed).failures()

    async def _upload(self, name: str) -> None:
        last, now = self.last, time.monotonic()
        reader = StableReader(self._root / name, last.scan.files[name])
        try:
            if reader.scanned.size <= CHUNK_BYTES:
                await self._write(name, reader)
            else:
                async with self._large_file_lock:
                    await self._write(name, reader)
        except (FileNotFoundError, NotADirectoryError):
            del last.scan.files[name]  # the trainer has removed it
        except Changed:
            last.changed.add(name)
        except FerryError as error:
            last.failed[name] = SyncFailure(error.problems, isinstance(error, TemporaryError))
        except OSError as error:
            unread = Problem("files cannot be read", str(error.strerror))
            last.failed[name] = SyncFailure((unread,), temporary=False)
        else:
            self._sent[name] = Sent(reader.read, reader.conclusive, reader.digest, now)
            last.sent += 1

    async def _write(self, name: str, reader: StableReader) -> None:
        await retry(self._attempts, lambda: self._connect().write(name, reader.body()))
