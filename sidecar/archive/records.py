"""Which archives an earlier start has unpacked, and which files of the stage came out of them.

A record is written once an archive is read and found whole, before the first of its members gets its name. So
a start that follows a kill knows whose each file is: an archive counts as unpacked if all its members are
there, else those that are there are trimmed and it is fetched again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import xxhash

from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.versioned_json import decode_document
from podferry.sidecar.archive.rules import Archive
from podferry.sidecar.runtime.atomic_file import replace_file

FORMAT = 1
DIRECTORY = "unpacked"
"""Of the records, beside the claim."""


class UnpackRecord(msgspec.Struct, frozen=True):
    """One archive that has been read to its end.

    Attributes:
        archive: As it was listed.
        members: Its files, with their names in the stage.
        format: Version of this document.
    """

    archive: Entry
    members: tuple[Entry, ...]
    format: int = FORMAT


class UnpackRecords:
    """The records of one stage.

    Args:
        root: The stage's directory.
        claims: Where it is noted what fills it.
    """

    def __init__(self, root: Path, claims: Path) -> None:
        self._root = str(root)
        self._directory = claims / DIRECTORY
        self._held = {path: record for path in self._paths() if (record := _read(path)) is not None}

    @property
    def ours(self) -> frozenset[str]:
        """Files of the stage that came out of archives, of whatever dataset: what may be trimmed."""
        return frozenset(member.name for record in self._held.values() for member in record.members)

    def whole(self, archives: Iterable[Archive]) -> dict[str, tuple[Entry, ...]]:
        """Those of the archives that are unpacked, with what came out of them, by their names."""
        entries = {archive.entry for archive in archives}
        return {
            record.archive.name: record.members
            for record in self._held.values()
            if record.archive in entries and all(map(self._is_there, record.members))
        }

    def settle(self, whole: dict[str, tuple[Entry, ...]], kept: frozenset[str]) -> frozenset[str]:
        """Forget all archives but those whose members the claim has kept; the names of these.

        Args:
            whole: Those that looked unpacked before the claim.
            kept: What the stage holds after it.
        """
        done = frozenset(name for name, members in whole.items() if all(one.name in kept for one in members))
        for path in [path for path, record in self._held.items() if record.archive.name not in done]:
            path.unlink(missing_ok=True)
            del self._held[path]
        return done

    def add(self, archive: Archive, members: Sequence[Entry]) -> None:
        """An archive is whole, and its members are about to get their names.

        Raises:
            OSError: The record cannot be written.
        """
        record = UnpackRecord(archive.entry, tuple(members))
        path = self._directory / f"{xxhash.xxh3_128_hexdigest(archive.name.encode())}.json"
        self._directory.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode(record))
        self._held[path] = record

    def _paths(self) -> Iterator[Path]:
        return self._directory.glob("*.json")

    def _is_there(self, member: Entry) -> bool:
        try:
            found = os.lstat(f"{self._root}/{member.name}")
        except OSError:
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size == member.size


def with_members(
    part: Manifest, archives: Iterable[Archive], whole: dict[str, tuple[Entry, ...]]
) -> Manifest:
    """What a stage is to hold, as far as it is known: in the place of archives, what came out of them.

    The digest stays: it names the dataset, however much of it has been unpacked.
    """
    packed = {archive.name for archive in archives}
    plain = (entry for entry in part.entries if entry.name not in packed)
    members = (member for one in whole.values() for member in one)
    return msgspec.structs.replace(part, entries=(*plain, *members))


def _read(path: Path) -> UnpackRecord | None:
    """A record that cannot be read is none: nothing is trimmed for it."""
    try:
        return decode_document(path.read_bytes(), UnpackRecord, FORMAT, str(path))
    except (OSError, Corrupt, FormatTooNew):
        return None
