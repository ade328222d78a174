"""Sends what a directory of outputs holds: one round after the other, each what has changed since."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from podferry.contract.errors import Changed, FerryError, Problem, TemporaryError
from podferry.sidecar.outputs.scan import CHUNK_BYTES, OutputScan, StableReader, naming, scan_outputs
from podferry.sidecar.runtime.concurrency import for_each_limited, retry
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.storage.store import Store

CONCURRENT_FILES = 4
"""Small files: latency bounds them. Larger ones go one at a time, for an engine holds two parts of each."""


class SyncFailure(NamedTuple):
    """Why a file was not sent. The error itself would hold on to the bytes that it met, file by file."""

    problems: tuple[Problem, ...]
    passing: bool


@dataclass(slots=True)
class SyncRound:
    """One look at the directory, and what came of it.

    Attributes:
        seen: What lay there.
        failed: What could not be sent, and why.
        changed: What did not stand still.
        sent: How many files went out.
    """

    seen: OutputScan = field(default_factory=lambda: OutputScan({}))
    failed: dict[str, SyncFailure] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    sent: int = 0

    @property
    def unsettled(self) -> bool:
        """Whether another round may do better."""
        return bool(self.changed) or any(failure.passing for failure in self.failed.values())

    def failures(self) -> tuple[Problem, ...]:
        """Why files could not be sent: each reason once, with their names."""
        names: dict[tuple[str, str, str], list[str]] = {}
        for name, failure in self.failed.items():
            for problem in failure.problems:
                names.setdefault((problem.what, problem.measured, problem.remedy), []).append(name)
        return tuple(
            Problem(what, ": ".join(filter(None, (naming(which), measured))), remedy)
            for (what, measured, remedy), which in names.items()
        )


class OutputSync:
    """Keeps a destination as a directory is.

    Args:
        root: The directory.
        connect: Gives the store, opened at the destination.
        attempts: Times that one file is sent, on top of the engine's own retries.

    Attributes:
        last: The last round, also while it goes on.
    """

    def __init__(self, root: Path, connect: Callable[[], Store], attempts: int) -> None:
        self._root, self._connect, self._attempts = root, connect, attempts
        self._sent: dict[str, tuple[FileIdentity, bool]] = {}
        self._one_round, self._one_large = asyncio.Lock(), asyncio.Lock()
        self.last = SyncRound()

    async def round(self) -> SyncRound:
        """Send what is not there as it lies in the directory now.

        The smallest files go first: where the time is short, most of them get through, and results are
        small while profiles and media are large.
        """
        async with self._one_round:
            try:
                seen = await asyncio.to_thread(scan_outputs, self._root)
            except OSError as error:
                unread = Problem(f"the output directory {self._root} cannot be read", str(error.strerror))
                self.last = SyncRound(failed={".": SyncFailure((unread,), passing=False)})
                return self.last
            self.last = SyncRound(seen)
            due = filter(self._is_due, seen.files)
            names = sorted(due, key=lambda name: (seen.files[name].size, name))
            await for_each_limited(names, self._send_one, CONCURRENT_FILES)
            return self.last

    def there(self) -> dict[str, int]:
        """Sizes of the files that the destination has as the last round saw them, by name."""
        seen = self.last.seen.files
        return {name: found.size for name, found in seen.items() if self._state_of(name)[0] == found}

    def _state_of(self, name: str) -> tuple[FileIdentity | None, bool]:
        """What was sent under a name, and whether that tells it from all that came later."""
        return self._sent.get(name, (None, False))

    def _is_due(self, name: str) -> bool:
        return self._state_of(name) != (self.last.seen.files[name], True)

    async def _send_one(self, name: str) -> None:
        last = self.last
        reading = StableReader(self._root / name, last.seen.files[name])
        try:
            await self._send(name, reading)
        except (FileNotFoundError, NotADirectoryError):
            del last.seen.files[name]  # the trainer has removed it
        except Changed:
            last.changed.add(name)
        except FerryError as error:
            last.failed[name] = SyncFailure(error.problems, isinstance(error, TemporaryError))
        except OSError as error:
            unread = Problem("files cannot be read", str(error.strerror))
            last.failed[name] = SyncFailure((unread,), passing=False)
        else:
            self._sent[name] = (reading.taken, reading.certain)
            last.sent += 1

    async def _send(self, name: str, reading: StableReader) -> None:
        if reading.seen.size <= CHUNK_BYTES:
            await self._write(name, reading)
        else:
            async with self._one_large:
                await self._write(name, reading)

    async def _write(self, name: str, reading: StableReader) -> None:
        await retry(self._attempts, lambda: self._connect().write(name, reading.body()))
