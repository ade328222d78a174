"""What a sync has written to its destination: the proof that a file there is equal to one of the source.

    <destination>/<names as in the source>          the files
    <destination>/.podferry/sync/<digits>.json      records: several if syncs were cut, or ran in parallel

A tag changes whenever its object does. So if a file has its recorded tag at the source, and its recorded tag
at the destination, the two are equal, even if their stores have no checksum in common. Any number of records
may describe one file: one that has both tags is enough. Format 1.
"""

from __future__ import annotations

import msgspec

from podferry.contract.manifest import Entry
from podferry.contract.versioned_json import decode_checksummed, encode_checksummed

FORMAT = 1


class SyncedFile(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """A file that is equal at both places.

    Attributes:
        name: Relative to source and destination.
        size: Bytes.
        source_tag: Of the source's object; never empty.
        target_tag: Of the destination's object; empty if its store has no tags.
    """

    name: str
    size: int
    source_tag: str
    target_tag: str


class SyncedArchive(msgspec.Struct, frozen=True, array_like=True):
    """An archive of the source, and the files that it was unpacked into, as the destination lists them."""

    archive: Entry
    members: tuple[Entry, ...]


class SyncRecord(msgspec.Struct, frozen=True):
    """Files of one source.

    Attributes:
        source: URI of the source: the same tags of another one prove nothing.
        files: Files that were moved as they are.
        archives: Those that were unpacked.
        format: Version of this document.
    """

    source: str
    files: tuple[SyncedFile, ...] = ()
    archives: tuple[SyncedArchive, ...] = ()
    format: int = FORMAT


def encode_sync_record(record: SyncRecord) -> bytes:
    """The record as JSON with a checksum."""
    return encode_checksummed(record)


def decode_sync_record(data: bytes, source: str) -> SyncRecord:
    """Read a record; raises as `decode_checksummed`."""
    return decode_checksummed(data, SyncRecord, FORMAT, source)
