"""The manifest: the frozen list of a dataset's files, and its digest.

Digest, format 1: SHA-256 over one line a file, sorted by name: the JSON array `[name, size, tag]` without
spaces, UTF-8, ended by a newline. The tag is the strongest that the store has (a checksum, an ETag), so the
same bytes uploaded again may get another digest; equal digests mean equal data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import attrgetter
from typing import Annotated

import msgspec

from podferry.contract.errors import Corrupt, Problem
from podferry.contract.file_names import clashes, duplicates, name_problem
from podferry.contract.versioned_json import decode_document

FORMAT = 1
SUFFIX = ".podferry.json"
"""Suffix of a manifest used as a dataset. Any other file is a dataset of one file."""
ENTRIES_PER_BATCH = 256
"""Lines encoded at a time: takes a third of the time of one by one, and little memory."""
MAX_NAMES_SHOWN = 3
"""In a message."""


class Entry(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """One file of a dataset.

    Attributes:
        name: Relative to the dataset's URI, with `/` between its parts.
        size: Bytes.
        tag: Identifies the content (ETag, CRC); empty if the store has none.
    """

    name: str
    size: Annotated[int, msgspec.Meta(ge=0)]
    tag: str = ""


class Manifest(msgspec.Struct, frozen=True):
    """A dataset's files, sorted by name.

    Attributes:
        uri: Their location: a prefix, or the object itself.
        digest: 64 hexadecimal digits, as `manifest_digest` computes them.
        bytes: Sum of the sizes.
        entries: The files.
        format: Version of this document.
    """

    uri: str
    digest: str
    bytes: int
    entries: tuple[Entry, ...]
    format: int = FORMAT

    @property
    def files(self) -> int:
        """Number of files."""
        return len(self.entries)


class Differences(msgspec.Struct, frozen=True):
    """How one listing differs from an earlier one; names are sorted.

    Attributes:
        changed: Files with another size or tag.
        added: Files only in the later one.
        removed: Files only in the earlier one.
    """

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.removed)

    def __str__(self) -> str:
        kinds = {"changed": self.changed, "added": self.added, "removed": self.removed}
        return "; ".join(
            f"{len(names):,} {kind}: {first_names(names)}" for kind, names in kinds.items() if names
        )


def differences(before: Iterable[Entry], after: Iterable[Entry]) -> Differences:
    """Compare two listings of one dataset."""
    old = {entry.name: entry for entry in before}
    changed, added = [], []
    for entry in after:
        known = old.pop(entry.name, None)
        if known is None:
            added.append(entry.name)
        elif known != entry:
            changed.append(entry.name)
    return Differences(tuple(sorted(changed)), tuple(sorted(added)), tuple(sorted(old)))


def first_names(names: Sequence[str]) -> str:
    """The first names for a message, then an ellipsis if there are more."""
    shown = ", ".join(map(printable, names[:MAX_NAMES_SHOWN]))
    return f"{shown}, …" if len(names) > MAX_NAMES_SHOWN else shown


def printable(name: str) -> str:
    """A name for a message, with control characters escaped."""
    return name if name.isprintable() else ascii(name)


def is_manifest_name(name: str) -> bool:
    """Whether a dataset with this name is a manifest rather than a file."""
    return name.endswith(SUFFIX) and name != SUFFIX


def manifest_digest(entries: Iterable[Entry]) -> str:
    """The digest of entries that are sorted by name, as 64 hexadecimal digits."""
    digest, encoder, rest = hashlib.sha256(), msgspec.json.Encoder(), iter(entries)
    while lines := encoder.encode_lines(list(islice(rest, ENTRIES_PER_BATCH))):
        digest.update(lines)
    return digest.hexdigest()


def freeze(uri: str, entries: Iterable[Entry]) -> Manifest:
    """The manifest of a listing.

    Raises:
        Corrupt: All names that cannot be files below one directory or are listed twice.
    """
    ordered = tuple(sorted(entries, key=attrgetter("name")))
    names = [entry.name for entry in ordered]
    what, remedy = "a name is listed twice", "List the dataset again"
    twice = [Problem(what, repr(name), remedy) for name in duplicates(names)]
    Corrupt.raise_any([*filter(None, map(name_problem, names)), *clashes(names), *twice])
    return Manifest(uri, manifest_digest(ordered), sum(entry.size for entry in ordered), ordered)


def encode_manifest(manifest: Manifest) -> bytes:
    """The manifest as JSON, one line."""
    return msgspec.json.encode(manifest)


def decode_manifest(data: bytes, source: str) -> Manifest:
    """Read a manifest from `source` and check it against its own digest.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: Not a manifest, or its digest does not match its entries.
    """
    manifest = decode_document(data, Manifest, FORMAT, source)
    computed = freeze(manifest.uri, manifest.entries)
    if computed != manifest:
        raise Corrupt.of(
            f"the manifest {source} contradicts its entries",
            f"it says sha256={manifest.digest}, {manifest.bytes} bytes; "
            f"its entries give {computed.digest}, {computed.bytes}",
            "Freeze the dataset again",
        )
    return manifest
