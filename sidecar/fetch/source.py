"""Where a prefetch fetches from."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.rate_limit import RateLimit
from podferry.storage.checksum.checksums import ChecksumOf, unknown_checksum
from podferry.storage.store import Store

Progress = Callable[[int, int], None]
"""Called with (files that are now complete, bytes that have arrived)."""


class FetchSource(msgspec.Struct, frozen=True):
    """Where to fetch from.

    Attributes:
        store: Holds the objects.
        object_of: Maps a file to its object; for a dataset, one of the same name.
        checksum_of: A file's expected checksum, or None if only the store knows it.
        origin: Where damaged ranges are fetched again; None for `store`.
        limit: Of the bytes from the origin; None for as many as arrive.
    """

    store: Store
    object_of: Callable[[Entry], Entry] = lambda entry: entry
    checksum_of: ChecksumOf = unknown_checksum
    origin: Store | None = None
    limit: RateLimit | None = None
