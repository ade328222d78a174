"""The ownership record of a stage, kept outside of it: the files that a later start may delete."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from podferry.contract.errors import Corrupt
from podferry.contract.versioned_json import decode_document
from podferry.sidecar.runtime.atomic_file import replace_file

RECORD = "claim"
FORMAT = 1


class OwnershipRecord(msgspec.Struct, frozen=True):
    """What podferry has written, or may have, to the stage.

    Attributes:
        digest: The manifest's.
        names: Its files, relative to the stage.
        boot: Boot ID of the machine: partial files may be lost with its memory.
        format: Version of this document.
    """

    digest: str
    names: frozenset[str]
    boot: str = ""
    format: int = FORMAT


def read_ownership(directory: Path) -> OwnershipRecord:
    """The record of the last start, or an empty one if it is unreadable: then nothing is deleted."""
    path = directory / RECORD
    try:
        return decode_document(path.read_bytes(), OwnershipRecord, FORMAT, str(path))
    except (FileNotFoundError, Corrupt):
        return OwnershipRecord("", frozenset())


def write_ownership(directory: Path, record: OwnershipRecord) -> None:
    """Replace the record."""
    replace_file(directory / RECORD, msgspec.json.encode(record))


def boot_id() -> str:
    """Identifies the current boot of the machine; empty if the system has no such ID (macOS)."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
