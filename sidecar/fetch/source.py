"""Where a prefetch's bytes come from: the store's own client, and how the lean lane asks beside it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from podferry.contract.manifest import Entry
from podferry.storage.checksum.checksums import Checksum
from podferry.storage.store import Store

Progress = Callable[[int, int], None]
"""Is told (files that have become whole, bytes that have come)."""


def same(entry: Entry) -> Entry:
    """A dataset's files are objects of the same names."""
    return entry


def unknown(entry: Entry) -> Checksum | None:
    """What a dataset's files add up to, their store alone may say."""
    return None


class FetchSource(msgspec.Struct, frozen=True):
    """Where bytes come from.

    Attributes:
        store: Holds the objects.
        object_of: The object that becomes a file.
        sum_of: What a file must add up to, where that is known without the store.
    """

    store: Store
    object_of: Callable[[Entry], Entry] = same
    sum_of: Callable[[Entry], Checksum | None] = unknown
