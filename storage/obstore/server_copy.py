"""Copies within a bucket: one request of obstore each, and one before and after it that verify the copy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import obstore

from podferry.storage.object_names import checked_name
from podferry.storage.obstore.bucket import ObstoreBucket
from podferry.storage.server_copy import StoredObject, checked_copy


class ObstoreServerCopy:
    """Copies objects of one bucket.

    S3 alone: Azure may answer before the copy is complete, and obstore does not show it ("Copy Blob", REST
    reference of Azure Storage).

    Attributes:
        max_bytes: 5 GiB: "CopyObject", Amazon S3 API reference.
    """

    max_bytes = 5 << 30

    def __init__(self, bucket: ObstoreBucket, describe: Callable[[str], Awaitable[StoredObject]]) -> None:
        self._bucket, self._describe = bucket, describe

    async def copy(self, source: str, target: str) -> StoredObject:
        """See `ServerCopy.copy`."""
        before = await self._describe(checked_name(source))
        async with self._bucket.call(source):
            store, key = self._bucket.store, self._bucket.key
            await obstore.copy_async(store, key(source), key(checked_name(target)))
        return checked_copy(self._bucket.uri / target, before, await self._describe(target))
