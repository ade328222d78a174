"""The checksums of a complete stage: computed once, recorded, and compared when a new process adopts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from podferry.contract.cache_api import HeldDataset
from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.manifest import Manifest
from podferry.contract.versioned_json import decode_document
from podferry.sidecar.runtime.atomic_file import replace_file
from podferry.sidecar.runtime.file_digest import update_from_file
from podferry.storage.checksum.checksums import ChecksumKind, running_checksum

FORMAT = 1
RECORD = "checksums"
NONE_COMPUTED: Mapping[str, int] = {}


class ChecksumRecord(msgspec.Struct, frozen=True):
    """What a stage held when it was complete.

    Attributes:
        digest: Of its manifest.
        checksums: CRC-64/NVME of each file, by name.
        manifest: What it held; None if it was not complete.
        uri: Of the dataset, as the holder was asked for it.
        format: Version of this document.
    """

    digest: str = ""
    checksums: Mapping[str, int] = {}
    manifest: Manifest | None = None
    uri: str = ""
    format: int = FORMAT


def file_checksum(path: Path) -> int:
    """CRC-64/NVME of a file."""
    running = running_checksum(ChecksumKind.CRC64NVME)
    with path.open("rb", buffering=0) as file:
        update_from_file(running, file)
    return int.from_bytes(running.digest(), "big")


def file_checksums(stage: Path, directory: Path, digest: str, names: Iterable[str]) -> dict[str, int]:
    """The checksums of files: recorded ones of the manifest with this digest, others computed. Blocks."""
    record = read_record(directory)
    known = record.checksums if record.digest == digest else {}
    return {name: known[name] if name in known else file_checksum(stage / name) for name in names}


def record_checksums(
    stage: Path, directory: Path, manifest: Manifest, uri: str, computed: Mapping[str, int] = NONE_COMPUTED
) -> tuple[int, ...]:
    """The checksums of a complete stage, in the order of its manifest; computes and records the unknown ones.

    Args:
        stage: The files. Reading them blocks.
        directory: Where the record is kept.
        manifest: What the stage holds.
        uri: Of the dataset.
        computed: Those that are known already.
    """
    names = [entry.name for entry in manifest.entries]
    unknown = [name for name in names if name not in computed]
    found = {**computed, **file_checksums(stage, directory, manifest.digest, unknown)}
    checksums = {name: found[name] for name in names}
    record = ChecksumRecord(manifest.digest, checksums, manifest, uri)
    if record != read_record(directory):
        replace_file(directory / RECORD, msgspec.json.encode(record))
    return tuple(checksums.values())


def recorded_dataset(directory: Path, uri: str) -> HeldDataset | None:
    """What a complete stage of this dataset held, as its record says; None without one."""
    record = read_record(directory)
    if record.manifest is None or record.uri != uri:
        return None
    entries = record.manifest.entries
    return HeldDataset(record.manifest, tuple(record.checksums[entry.name] for entry in entries))


def write_record(directory: Path, digest: str, checksums: Mapping[str, int]) -> None:
    """Record the checksums of some files of a stage that is not complete."""
    replace_file(directory / RECORD, msgspec.json.encode(ChecksumRecord(digest, checksums)))


def remove_damaged(stage: Path, directory: Path) -> list[str]:
    """Remove the files of an adopted stage that differ from its record: they are fetched again. Blocks.

    Returns:
        Their names.
    """
    record = read_record(directory)
    damaged = [name for name, checksum in record.checksums.items() if _differs(stage / name, checksum)]
    for name in damaged:
        (stage / name).unlink(missing_ok=True)
    if damaged:
        rest = {name: value for name, value in record.checksums.items() if name not in set(damaged)}
        write_record(directory, record.digest, rest)
    return damaged


def _differs(path: Path, checksum: int) -> bool:
    try:
        return file_checksum(path) != checksum
    except OSError:  # it is gone, or no file
        return True


def read_record(directory: Path) -> ChecksumRecord:
    """What is recorded about a stage; an empty record without one that can be read."""
    path = directory / RECORD
    try:
        return decode_document(path.read_bytes(), ChecksumRecord, FORMAT, str(path))
    except (FileNotFoundError, Corrupt, FormatTooNew):
        return ChecksumRecord()
