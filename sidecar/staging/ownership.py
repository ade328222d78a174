"""What fills a stage, written down outside of it: what a later start may trim."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from podferry.contract.errors import Corrupt
from podferry.contract.versioned_json import decode_document
from podferry.sidecar.runtime.atomic_file import replace_file

FORMAT = 1


class OwnershipRecord(msgspec.Struct, frozen=True):
    """What fills the stage.

    Attributes:
        digest: The manifest's.
        names: Its files, relative to the stage: what a later start may trim.
        boot: Of which start of the machine: what it had written in part may be lost with its memory.
        format: Version of this document.
    """

    digest: str
    names: frozenset[str]
    boot: str = ""
    format: int = FORMAT


def read_ownership(claims: Path) -> OwnershipRecord:
    """What the last start claimed. A claim that cannot be read is none: then nothing is trimmed."""
    path = claims / "claim"
    try:
        return decode_document(path.read_bytes(), OwnershipRecord, FORMAT, str(path))
    except (FileNotFoundError, Corrupt):
        return OwnershipRecord("", frozenset())


def write_ownership(claims: Path, claim: OwnershipRecord) -> None:
    """Put a claim in the place of the one before."""
    replace_file(claims / "claim", msgspec.json.encode(claim))


def boot_id() -> str:
    """Which start of the machine this is; empty where the system does not tell (macOS)."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
