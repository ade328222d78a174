"""Reads parts of files from a stage, also of those that are not complete yet."""

from __future__ import annotations

import os
from io import FileIO

from podferry.cache.peers.file_log import FileLog
from podferry.contract.cache_api import HeldDataset
from podferry.contract.file_part import FilePart, parts_of
from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.partial_file import partial_name, written_ranges
from podferry.sidecar.runtime.file_digest import CHUNK_BYTES
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.storage.checksum.checksums import crc64


def open_staged(stage: StageWriter, entry: Entry) -> FileIO:
    """Open a file, complete or not; raises `FileNotFoundError` if the stage has nothing of it."""
    whole, partial = stage.root / entry.name, stage.partial_dir / partial_name(entry)
    for path in (whole, partial):
        try:
            return FileIO(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "r")
        except FileNotFoundError:
            continue
    return FileIO(os.open(whole, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "r")  # published meanwhile


def part_checksum(stage: StageWriter, part: FilePart) -> int:
    """CRC-64/NVME of a part that the stage has. Blocks."""
    value, end = 0, part.start + part.length
    with open_staged(stage, part.entry) as file:
        for start in range(part.start, end, CHUNK_BYTES):
            value = crc64(os.pread(file.fileno(), min(CHUNK_BYTES, end - start), start), value)
    return value


def adopted_log(held: HeldDataset, stage: StageWriter) -> FileLog:
    """What a holder that has found everything lets the others know. Blocks: it reads large files."""
    found = FileLog(held.manifest)
    checksums: dict[FilePart, int] = {}
    for entry, checksum in zip(held.manifest.entries, held.checksums, strict=True):
        for part in parts_of(entry):
            checksums[part] = checksum if part.is_whole else part_checksum(stage, part)
    found.hold(checksums)
    return found


def written_parts(stage: StageWriter, entry: Entry, range_bytes: int) -> tuple[FilePart, ...]:
    """The parts of an incomplete file that an earlier start wrote."""
    lengths = {one.start: one.length for one in written_ranges(stage, entry, range_bytes)}
    return tuple(part for part in parts_of(entry) if _is_written(part, lengths, range_bytes))


def _is_written(part: FilePart, lengths: dict[int, int], range_bytes: int) -> bool:
    starts = range(part.start, part.start + part.length, range_bytes)
    return bool(lengths) and sum(lengths.get(start, 0) for start in starts) == part.length
