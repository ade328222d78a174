"""One version of a dataset that a holder serves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import NamedTuple

import msgspec

from podferry.contract.cache_api import HeldDataset
from podferry.contract.manifest import Entry
from podferry.contract.versioned_json import encode_json


class Version(msgspec.Struct):
    """What is served.

    Attributes:
        document: For readers that ask for the dataset.
        body: The same as JSON, encoded once for all of them.
        entries: Its files by name.
        root: Where they are.
        used_at: When one of them was last asked for; seconds of a monotonic clock.
    """

    document: HeldDataset
    body: bytes
    entries: dict[str, Entry]
    root: Path
    used_at: float = 0.0

    @property
    def digest(self) -> str:
        """Of its manifest."""
        return self.document.manifest.digest


class HeldFile(NamedTuple):
    """A file of which a holder has something.

    Attributes:
        entry: As it was listed.
        path: Where it is, if all of it is there.
        open: Opens it where these bytes are needed, by start and length; raises `FileNotFoundError` without
            them.
    """

    entry: Entry
    path: Path
    open: Callable[[int, int], FileIO]


async def version_of(document: HeldDataset, root: Path) -> Version:
    """A version with all files of a document."""
    document = msgspec.structs.replace(document, bundles=True)
    body = await asyncio.to_thread(encode_json, document)
    return Version(document, body, {entry.name: entry for entry in document.manifest.entries}, root)


def held_file(version: Version, name: str) -> HeldFile | None:
    """A file of a version."""
    entry = version.entries.get(name)
    if entry is None:
        return None
    path = version.root / name
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    return HeldFile(entry, path, lambda start, length: FileIO(os.open(path, flags), "r"))
