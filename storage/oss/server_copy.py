"""Copies within a bucket of OSS: one request each, and one before and after it that verify the copy."""

from __future__ import annotations

from urllib.parse import quote

from podferry.contract.errors import Unavailable
from podferry.contract.manifest import Entry
from podferry.storage.checksum.response_header import response_checksum
from podferry.storage.object_names import checked_name, join
from podferry.storage.oss.client import OssClient, OssRequest
from podferry.storage.server_copy import StoredObject, checked_copy


class OssServerCopy:
    """Copies objects of one bucket.

    Attributes:
        max_bytes: Larger objects have to be copied in parts: "CopyObject", Alibaba's OSS API reference.
    """

    max_bytes = 1 << 30

    def __init__(self, client: OssClient) -> None:
        self._client = client

    async def copy(self, source: str, target: str) -> StoredObject:
        """See `ServerCopy.copy`."""
        access = self._client.access
        before = await self._describe(checked_name(source))
        header = f"/{access.bucket}/{quote(join(access.uri.key, source))}"
        await self._client.send(
            OssRequest("PUT", checked_name(target), headers={"x-oss-copy-source": header})
        )
        return checked_copy(access.uri / target, before, await self._describe(target))

    async def _describe(self, name: str) -> StoredObject:
        headers = (await self._client.send(OssRequest("HEAD", name))).headers
        size = headers.get("Content-Length", "")
        if not size.isdecimal():
            uri = self._client.access.uri / name
            raise Unavailable.of(f"the store did not say the size of {uri}", size or "no size", "Try again")
        lines = "".join(f"{field}: {value}\r\n" for field, value in headers.items())
        head = f"HTTP/1.1 200 OK\r\n{lines}".encode(errors="replace")
        return StoredObject(int(size), response_checksum(head, Entry(name, int(size))))
