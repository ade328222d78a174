"""A large file whose ranges arrive in any order, over as many starts as it takes.

Next to it is a journal of its written ranges: one line each, appended after the bytes. It survives the end
of the process, which loses no page of a file; after a reboot it is not trusted (`StagingDir.claim`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import reduce

import msgspec
import xxhash

from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.plan import FetchPlan
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.storage.checksum.checksums import ChecksumKind, combine_crcs

JOURNAL_SUFFIX = ".ranges"


class WrittenRange(msgspec.Struct, frozen=True, array_like=True):
    """A range that is in the file.

    Attributes:
        start, length: Bytes.
        kind: The `podferry.storage.checksum.checksums.ChecksumKind` of `crc`, or empty.
        crc: Its checksum.
    """

    start: int
    length: int
    kind: str = ""
    crc: int = 0


class PartialFile:
    """One file that is being fetched.

    Args:
        stage: Where it is published.
        entry: What it becomes.
        range_bytes: Length of its ranges; those of another length, from an earlier start, are ignored.

    Attributes:
        path: The partial file.
        written: Its ranges that are in the file, by their start.
    """

    def __init__(self, stage: StageWriter, entry: Entry, range_bytes: int) -> None:
        self.entry = entry
        key = partial_name(entry)
        self.path = stage.partial_dir / key
        self.written = {one.start: one for one in written_ranges(stage, entry, range_bytes)}
        self._count = sum(one.length for one in self.written.values())
        self._journal = stage.partial_dir / (key + JOURNAL_SUFFIX)
        self._stage = stage
        if not self.written:
            self._journal.unlink(missing_ok=True)
            stage.create_partial(key)

    @property
    def complete(self) -> bool:
        """Whether all of its ranges are written."""
        return self._count == self.entry.size

    def record(self, written: WrittenRange) -> None:
        """Record a written range, for later starts as well; `OSError`: ENOSPC if the volume is full."""
        self._count += written.length if written.start not in self.written else 0
        self.written[written.start] = written
        descriptor = os.open(self._journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(written) + b"\n")
        finally:
            os.close(descriptor)

    def forget(self, start: int, length: int) -> None:
        """Some ranges must be fetched again: what was written there is wrong."""
        kept = [one for one in self.written.values() if not start <= one.start < start + length]
        self._journal.unlink(missing_ok=True)
        self.written, self._count = {}, 0
        for one in kept:
            self.record(one)

    @property
    def content(self) -> int | None:
        """CRC-64/NVME of the complete file; None if one of its ranges was written without it."""
        ordered = [self.written[start] for start in sorted(self.written)]
        if any(one.kind != ChecksumKind.CRC64NVME for one in ordered):
            return None
        return reduce(_followed_by, ordered, 0)

    def publish(self) -> None:
        """Rename it, complete and verified, to its name."""
        self._stage.publish(self.path, self.entry)
        self._journal.unlink(missing_ok=True)


def _followed_by(crc: int, written: WrittenRange) -> int:
    return combine_crcs(ChecksumKind.CRC64NVME, crc, written.crc, written.length)


def written_ranges(stage: StageWriter, entry: Entry, range_bytes: int) -> Iterator[WrittenRange]:
    """The ranges of a file that an earlier start wrote.

    A torn line ends the journal: its range is fetched again.
    """
    key = partial_name(entry)
    try:
        lines = (stage.partial_dir / (key + JOURNAL_SUFFIX)).read_bytes().split(b"\n")[:-1]
        size = (stage.partial_dir / key).stat().st_size
    except OSError:
        return
    for line in lines:
        try:
            one = msgspec.json.decode(line, type=WrittenRange)
        except msgspec.MsgspecError:
            return
        planned = one.start % range_bytes == 0 and one.length == min(range_bytes, entry.size - one.start)
        if planned and one.start >= 0 and one.start + one.length <= size:
            yield one


def count_partial_bytes(plan: FetchPlan, stage: StageWriter) -> FetchPlan:
    """The plan with the bytes of incomplete files that an earlier start wrote."""
    if next(stage.partial_dir.glob(f"*{JOURNAL_SUFFIX}"), None) is None:
        return plan
    large = (file for file, count in zip(plan.files, plan.range_counts, strict=True) if count > 1)
    partial_bytes = sum(one.length for file in large for one in written_ranges(stage, file, plan.range_bytes))
    return msgspec.structs.replace(plan, partial_bytes=partial_bytes)


def partial_name(entry: Entry) -> str:
    """The name of the partial file: another one for each version of each file."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(entry))
