"""A large file that comes in ranges, in any order, over as many starts as it takes.

Beside it lies a journal of the ranges that are written: one line each, added after the bytes. It holds over
the end of a process, which loses no page of a file; over a restart of the machine it is not believed
(`StagingDir.claim`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec
import xxhash

from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.plan import FetchPlan
from podferry.sidecar.staging.staging_dir import StagingDir

JOURNAL = ".ranges"


class WrittenRange(msgspec.Struct, frozen=True, array_like=True):
    """A range that is written.

    Attributes:
        start, length: Of it, bytes.
        kind: How its sum was computed (`podferry.storage.checksum.checksums.ChecksumKind`), empty where none
        was.
        crc: The sum.
    """

    start: int
    length: int
    kind: str = ""
    crc: int = 0


class PartialFile:
    """One file aside.

    Args:
        stage: What it is to get into; claimed.
        entry: What it is to become.
        range_bytes: Length of its ranges; those of another length, of an earlier start, are not kept.

    Attributes:
        path: Where it grows.
        came: Its ranges that are written, by their start.
    """

    def __init__(self, stage: StagingDir, entry: Entry, range_bytes: int) -> None:
        self.entry = entry
        key = _key(entry)
        self.path = stage.aside / key
        self.came = {one.start: one for one in written(stage, entry, range_bytes)}
        self._count = sum(one.length for one in self.came.values())
        self._journal = stage.aside / (key + JOURNAL)
        self._stage = stage
        if not self.came:
            self._journal.unlink(missing_ok=True)
            stage.grow(key)

    @property
    def whole(self) -> bool:
        """Whether all of its ranges are written."""
        return self._count == self.entry.size

    def note(self, came: WrittenRange) -> None:
        """A range is written: remember it, also for a later start.

        Raises:
            OSError: ENOSPC where the volume is full.
        """
        self._count += came.length if came.start not in self.came else 0
        self.came[came.start] = came
        descriptor = os.open(self._journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(came) + b"\n")
        finally:
            os.close(descriptor)

    def admit(self) -> None:
        """It is whole, and right: give it its name."""
        self._stage.admit(self.path, self.entry)
        self._journal.unlink(missing_ok=True)


def written(stage: StagingDir, entry: Entry, range_bytes: int) -> Iterator[WrittenRange]:
    """The ranges of a file that an earlier start wrote; none where it has not begun.

    A line that was cut off ends the journal: nobody counts on the range that it would have told.
    """
    key = _key(entry)
    try:
        lines = (stage.aside / (key + JOURNAL)).read_bytes().split(b"\n")[:-1]
        size = (stage.aside / key).stat().st_size
    except OSError:
        return
    for line in lines:
        try:
            came = msgspec.json.decode(line, type=WrittenRange)
        except msgspec.MsgspecError:
            return
        planned = came.start % range_bytes == 0 and came.length == min(range_bytes, entry.size - came.start)
        if planned and came.start >= 0 and came.start + came.length <= size:
            yield came


def continued(plan: FetchPlan, stage: StagingDir) -> FetchPlan:
    """A plan that counts what an earlier start wrote of files that are not whole."""
    if next(stage.aside.glob(f"*{JOURNAL}"), None) is None:
        return plan
    large = (file for file, count in zip(plan.files, plan.pieces, strict=True) if count > 1)
    partial = sum(came.length for file in large for came in written(stage, file, plan.range_bytes))
    return msgspec.structs.replace(plan, partial=partial)


def _key(entry: Entry) -> str:
    """A name of its own aside for each version of each file."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(entry))
