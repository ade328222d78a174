"""Records which staged files came from which archive; a restarted agent reads them.

A record is written once an archive is read completely, before its first member gets its name. After a kill,
the next start knows the origin of every file: an archive counts as unpacked if all its members exist;
otherwise the existing ones are trimmed and the archive is fetched again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import xxhash

from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.versioned_json import decode_document
from podferry.sidecar.archive.unpack_rules import Archive
from podferry.sidecar.runtime.atomic_file import replace_file

FORMAT = 1
DIRECTORY = "unpacked"
"""Of the records, next to the ownership record."""
Members = dict[str, tuple[Entry, ...]]
"""The members of unpacked archives, by the archives' names."""


class UnpackRecord(msgspec.Struct, frozen=True):
    """One archive that was read to its end.

    Attributes:
        archive: The listed object.
        members: Its files, with their names in the staging directory.
        format: Version of this document.
    """

    archive: Entry
    members: tuple[Entry, ...]
    format: int = FORMAT


class UnpackRecords:
    """The records of one staging directory.

    1. `find_unpacked`, before the directory is claimed for a dataset.
    2. `keep`, after that.
    3. `add`, for each archive that is unpacked.

    Args:
        root: The staging directory.
        ownership_dir: The directory of its ownership record.
    """

    def __init__(self, root: Path, ownership_dir: Path) -> None:
        self._root = str(root)
        self._directory = ownership_dir / DIRECTORY
        paths = self._directory.glob("*.json")
        self._records = {path: record for path in paths if (record := _read(path)) is not None}

    @property
    def member_names(self) -> frozenset[str]:
        """All files that came from archives of any dataset: podferry may delete them."""
        return frozenset(member.name for record in self._records.values() for member in record.members)

    def find_unpacked(self, archives: Iterable[Archive]) -> Members:
        """Those of the archives whose members all exist."""
        entries = {archive.entry for archive in archives}
        return {
            record.archive.name: record.members
            for record in self._records.values()
            if record.archive in entries and all(map(self._exists, record.members))
        }

    def keep(self, unpacked: Members, kept: frozenset[str]) -> frozenset[str]:
        """Delete the records of all archives except those whose members were kept; the names of these.

        Args:
            unpacked: The result of `find_unpacked`.
            kept: The files that the staging directory still has after it was claimed.
        """
        names = frozenset(
            name for name, members in unpacked.items() if all(member.name in kept for member in members)
        )
        for path in [path for path, record in self._records.items() if record.archive.name not in names]:
            path.unlink(missing_ok=True)
            del self._records[path]
        return names

    def add(self, archive: Archive, members: Sequence[Entry]) -> None:
        """Record an archive before its members get their names; raises `OSError` if that fails."""
        record = UnpackRecord(archive.entry, tuple(members))
        path = self._directory / f"{xxhash.xxh3_128_hexdigest(archive.name.encode())}.json"
        self._directory.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode(record))
        self._records[path] = record

    def _exists(self, member: Entry) -> bool:
        try:
            found = os.lstat(f"{self._root}/{member.name}")
        except OSError:
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size == member.size


def replace_with_members(part: Manifest, archives: Iterable[Archive], unpacked: Members) -> Manifest:
    """A manifest with the known members of archives in place of the archives.

    The digest stays: it identifies the dataset, however much of it is unpacked.
    """
    archive_names = {archive.name for archive in archives}
    plain = (entry for entry in part.entries if entry.name not in archive_names)
    members = (member for members in unpacked.values() for member in members)
    return msgspec.structs.replace(part, entries=(*plain, *members))


def _read(path: Path) -> UnpackRecord | None:
    """Unreadable records are ignored: nothing is trimmed because of them."""
    try:
        return decode_document(path.read_bytes(), UnpackRecord, FORMAT, str(path))
    except (OSError, Corrupt, FormatTooNew):
        return None
