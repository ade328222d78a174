"""The frozen list of a dataset's files, and the digest that names it.

Digest, format 1: SHA-256 over one line a file, sorted by name: the JSON array `[name, size, tag]` without
spaces, UTF-8, ended by a newline. The tag is the strongest that the store gives (a checksum, an ETag), so
the same bytes uploaded anew may get another digest; equal digests mean equal data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import pairwise

import msgspec

from podferry.contract.documents import decode_document
from podferry.contract.errors import Corrupt, Problem
from podferry.contract.names import clashes, name_problem

FORMAT = 1


class Entry(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """One file of a dataset.

    Attributes:
        name: Relative to the dataset's URI, with `/` between its parts.
        size: Bytes.
        tag: What the store says identifies the content (ETag, CRC), empty where it says nothing.
    """

    name: str
    size: int
    tag: str = ""


class Manifest(msgspec.Struct, frozen=True):
    """A dataset's files, sorted by name.

    Attributes:
        uri: Where they lie: a prefix, or the one object itself.
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
        """How many files there are."""
        return len(self.entries)


def manifest_digest(entries: Iterable[Entry]) -> str:
    """The digest of entries that are sorted by name, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(msgspec.json.encode((entry.name, entry.size, entry.tag)) + b"\n")
    return digest.hexdigest()


def freeze(uri: str, entries: Iterable[Entry]) -> Manifest:
    """The manifest of a listing.

    Raises:
        Corrupt: Names that cannot be files below one directory, or come twice, all at once.
    """
    ordered = tuple(sorted(entries))
    names = [entry.name for entry in ordered]
    Corrupt.raise_any([*filter(None, map(name_problem, names)), *clashes(names), *_twice(names)])
    return Manifest(uri, manifest_digest(ordered), sum(entry.size for entry in ordered), ordered)


def _twice(names: list[str]) -> list[Problem]:
    """Names that a listing gives more than once: which of them is the file, nobody can say."""
    found = sorted({name for name, following in pairwise(names) if name == following})
    return [Problem("a name is listed twice", repr(name), "List it again") for name in found]


def encode_manifest(manifest: Manifest) -> bytes:
    """The manifest as JSON, one line."""
    return msgspec.json.encode(manifest)


def decode_manifest(data: bytes, source: str) -> Manifest:
    """Read a manifest and check it against its own digest.

    Args:
        data: The document.
        source: Where it came from, for messages.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: No manifest, or one whose entries do not give its digest.
    """
    manifest = decode_document(data, Manifest, FORMAT, source)
    computed = freeze(manifest.uri, manifest.entries)
    if computed != manifest:
        raise Corrupt(
            Problem(
                f"the manifest {source} does not agree with itself",
                f"it says sha256={manifest.digest}, {manifest.bytes} bytes; "
                f"its entries give {computed.digest}, {computed.bytes}",
                "Freeze the dataset again",
            )
        )
    return manifest
