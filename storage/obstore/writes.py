"""Writing and deleting objects through obstore.

A create is one conditional request. If its response is lost, obstore's retry may find the object that it
wrote itself and raise `AlreadyExists`: a caller that must know compares contents. If the connection breaks
and nothing is certain, `Unavailable` is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import obstore

from podferry.contract.errors import FerryError, NotFound
from podferry.storage.errors.translate import store_error
from podferry.storage.object_names import checked_name
from podferry.storage.obstore.bucket import OBSTORE_ERRORS, ObstoreBucket, is_unanswered
from podferry.storage.store import Body
from podferry.storage.timeouts_and_limits import Limits
from podferry.storage.write_body import BodySource, as_bytes

MAX_DELETED_NAMES = 1000
"""Names in one deletion request: S3's limit."""


class ObstoreWrites:
    """Writes and deletes objects of one bucket."""

    def __init__(self, bucket: ObstoreBucket, limits: Limits) -> None:
        self._bucket, self._limits = bucket, limits

    async def overwrite(self, name: str, body: Body) -> None:
        """Write an object; bodies of a part or more are uploaded in parts, aborted on a failure."""
        checked_name(name)
        await self._bucket.prepare()
        source = BodySource(body, self._limits.part_bytes, self._limits.max_object_bytes)
        small = await source.read_small()
        try:
            await source.finish(asyncio.ensure_future(self._put(name, small, source)))
        finally:
            del small  # a failure's traceback holds this frame

    async def _put(self, name: str, small: bytes | None, source: BodySource) -> None:
        store, key = self._bucket.store, self._bucket.key(name)
        try:
            if small is not None:
                await obstore.put_async(store, key, small, use_multipart=False)
            else:
                size, concurrency = self._limits.part_bytes, self._limits.concurrent_parts
                await obstore.put_async(
                    store, key, source.stream(), chunk_size=size, max_concurrency=concurrency
                )
        except OBSTORE_ERRORS as error:
            if source.failure is not None:
                raise  # `finish` replaces it: nothing is wrong with the bucket
            raise await self._bucket.translated(error, name) from error
        self._bucket.exists = True

    async def create(self, name: str, body: Body) -> None:
        """Write an object that must not exist yet, in one request."""
        key = self._bucket.key(checked_name(name))
        data = await asyncio.to_thread(as_bytes, body)
        async with self._bucket.call(name):
            try:
                await obstore.put_async(self._bucket.store, key, data, mode="create")
            except OBSTORE_ERRORS as error:
                # Some servers close the connection when they refuse a create.
                if is_unanswered(error) and await self._has_other_size(name, len(data)):
                    raise store_error("exists", self._bucket.location, name) from error
                raise

    async def _has_other_size(self, name: str, size: int) -> bool:
        try:
            async with self._bucket.call(name):
                found = await obstore.head_async(self._bucket.store, self._bucket.key(name))
        except FerryError:
            return False
        return found["size"] != size

    async def delete(self, names: Iterable[str]) -> None:
        """Delete objects; missing ones are ignored."""
        keys = [self._bucket.key(checked_name(name)) for name in names]
        for start in range(0, len(keys), MAX_DELETED_NAMES):
            batch = keys[start : start + MAX_DELETED_NAMES]
            async with self._bucket.call():
                try:
                    await obstore.delete_async(self._bucket.store, batch)
                except FileNotFoundError:
                    # Azure stops at the first missing name; S3 responds so only if the bucket is missing.
                    await asyncio.gather(*(self._delete_one(key) for key in batch))

    async def _delete_one(self, key: str) -> None:
        try:
            await obstore.delete_async(self._bucket.store, key)
        except OBSTORE_ERRORS as error:
            found = await self._bucket.translated(error)
            if type(found) is not NotFound:
                raise found from error
