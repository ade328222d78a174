"""Notes at a pack's target, from which a later run resumes; deleted after the index is written."""

from __future__ import annotations

from collections.abc import Container
from typing import TypeVar

import msgspec

from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.pack import FORMAT, UNFINISHED_DIR, PackShard
from podferry.contract.versioned_json import decode_document
from podferry.storage.store import Store

STARTED = f"{UNFINISHED_DIR}/begun.json"

Note = TypeVar("Note", "PackStarted", "ShardDone")


class PackStarted(msgspec.Struct, frozen=True):
    """What is being packed.

    Attributes:
        source: The dataset's digest.
        shard_bytes: Maximum size of an archive.
        format: Version of this document.
    """

    source: str
    shard_bytes: int
    format: int = FORMAT


class ShardDone(msgspec.Struct, frozen=True):
    """A complete shard.

    Attributes:
        shard: Its entry in the future index.
        tag: The version of the object.
        format: Version of this document.
    """

    shard: PackShard
    tag: str
    format: int = FORMAT


def shard_note(shard: str) -> str:
    """The name of a shard's note."""
    return f"{UNFINISHED_DIR}/{shard}.json"


async def read_note(store: Store, name: str, kind: type[Note], objects: Container[str]) -> Note | None:
    """A note, or None if it is not among the target's objects, or unreadable."""
    if name not in objects:
        return None
    try:
        return decode_document(bytes(await store.read(name)), kind, FORMAT, name)
    except (Corrupt, FormatTooNew):
        return None
