"""Writing and deleting objects of OSS.

A create is one request with `x-oss-forbid-overwrite`. If its response is lost, a retry may find the object
that it wrote itself and raise `AlreadyExists`: a caller that must know compares contents.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from contextlib import suppress
from html import escape

from podferry.contract.errors import FerryError, Refused
from podferry.storage.in_parallel import for_each_limited
from podferry.storage.multipart import UploadedPart
from podferry.storage.object_names import checked_name, join
from podferry.storage.oss.client import OssClient, OssRequest
from podferry.storage.oss.content_md5 import content_md5
from podferry.storage.oss.multipart import OssMultipart
from podferry.storage.store import Body
from podferry.storage.timeouts_and_limits import Limits
from podferry.storage.write_body import BodySource, as_bytes

MAX_DELETED_NAMES = 1000
"""Names in one deletion request: "DeleteMultipleObjects", Alibaba's OSS API reference."""
VERSION_HEADER = "x-oss-version-id"
"""In the response to a write if the bucket keeps versions: then OSS ignores `x-oss-forbid-overwrite`."""


class OssWrites:
    """Writes and deletes objects of one bucket."""

    def __init__(self, client: OssClient, multipart: OssMultipart, limits: Limits) -> None:
        self._client, self._multipart, self._limits = client, multipart, limits

    async def overwrite(self, name: str, body: Body) -> None:
        """Write an object; bodies of a part or more are uploaded in parts, aborted on a failure."""
        checked_name(name)
        source = BodySource(body, self._limits.part_bytes, self._limits.max_object_bytes)
        small = await source.read_small()
        try:
            await source.finish(asyncio.ensure_future(self._write(name, small, source)))
        finally:
            del small  # a failure's traceback holds this frame

    async def create(self, name: str, body: Body) -> None:
        """Write an object that must not exist yet, in one request.

        Raises:
            AlreadyExists: It exists.
            Refused: The bucket keeps versions.
        """
        checked_name(name)
        data = await asyncio.to_thread(as_bytes, body)
        if VERSION_HEADER in await self._put(name, data, {"x-oss-forbid-overwrite": "true"}):
            what = f"the bucket of {self._client.access.uri} keeps versions"
            measured = f"for such buckets OSS ignores x-oss-forbid-overwrite; {self._client.location.address}"
            remedy = "Use a bucket without versioning: two writers could replace each other's commits here"
            raise Refused.of(what, measured, remedy)

    async def delete(self, names: Iterable[str]) -> None:
        """Delete objects; missing ones are ignored."""
        keys = [join(self._client.access.uri.key, checked_name(name)) for name in names]
        for start in range(0, len(keys), MAX_DELETED_NAMES):
            listed = "".join(
                f"<Object><Key>{escape(key)}</Key></Object>" for key in keys[start:][:MAX_DELETED_NAMES]
            )
            body = f"<Delete><Quiet>true</Quiet>{listed}</Delete>".encode()
            headers = {"Content-MD5": content_md5(body), "Content-Type": "application/xml"}
            await self._client.send(OssRequest("POST", "", {"delete": ""}, headers, body))

    async def _write(self, name: str, small: bytes | None, source: BodySource) -> None:
        if small is not None:
            await self._put(name, small)
        else:
            await self._upload(name, source)

    async def _put(self, name: str, data: bytes, more: dict[str, str] | None = None) -> set[str]:
        """Put an object in one request; returns the names of the headers of the response."""
        headers = {"Content-MD5": await asyncio.to_thread(content_md5, data), **(more or {})}
        response = await self._client.send(OssRequest("PUT", name, headers=headers, body=data))
        return {header.lower() for header in response.headers}

    async def _upload(self, name: str, source: BodySource) -> None:
        upload = await self._multipart.begin(name, self._limits.part_bytes)
        try:
            parts = await self._send_parts(name, upload, source)
            await self._multipart.complete(name, upload, parts)
        except BaseException:
            with suppress(FerryError):  # the first error counts
                await self._multipart.abort(name, upload)
            raise

    async def _send_parts(self, name: str, upload: str, source: BodySource) -> list[UploadedPart]:
        """Send all parts; each of a few workers reads the next one, in order, and sends it."""
        numbers, reading, parts = itertools.count(1), asyncio.Lock(), list[UploadedPart]()

        async def work(worker: int) -> None:
            del worker
            while True:
                async with reading:
                    data, number = await asyncio.to_thread(source.next_part), next(numbers)
                if not data:
                    return
                parts.append(await self._multipart.send(name, upload, number, data))

        workers = self._limits.concurrent_parts
        await for_each_limited(range(workers), work, workers)
        return parts
