"""Uploads in parts at stores that know nothing of an upload before it is complete.

A first part, number 0, which no object is made of, shows that the upload exists.
"""

from __future__ import annotations

import asyncio
import secrets
from abc import ABC, abstractmethod

from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import crc64
from podferry.storage.multipart import UploadedPart, check_part, check_part_bytes, unknown_upload
from podferry.storage.object_names import checked_name
from podferry.storage.timeouts_and_limits import MIB


class StagedUploads(ABC):
    """Starts uploads and stages their parts; a subclass completes and aborts them. See `MultipartStore`.

    Attributes:
        max_part_bytes: Bytes of the largest part.
        upload_bytes: Random bytes of an upload's identifier.
        marker: Content of the first part.
    """

    min_part_bytes = MIB
    max_part_bytes: int
    max_parts: int
    upload_bytes: int
    marker = b""

    def __init__(self, uri: Uri) -> None:
        self._uri = uri
        self._known: set[str] = set()  # uploads whose first part this process has seen

    @abstractmethod
    async def _stage(self, name: str, upload: str, number: int, data: bytes | memoryview) -> str:
        """Send a part, verified by the store; its tag."""

    @abstractmethod
    async def _has_begun(self, name: str, upload: str) -> bool:
        """Whether the upload's first part is at the store."""

    async def begin(self, name: str, part_bytes: int) -> str:
        """See `MultipartStore.begin`."""
        check_part_bytes(self._uri / checked_name(name), part_bytes, self.min_part_bytes)
        upload = secrets.token_hex(self.upload_bytes)
        await self._stage(name, upload, 0, self.marker)
        self._known.add(upload)
        return upload

    async def send(self, name: str, upload: str, number: int, data: bytes | memoryview) -> UploadedPart:
        """See `MultipartStore.send`."""
        checked_name(name)
        check_part(self._uri / name, number, len(data), self.max_part_bytes, self.max_parts)
        if upload not in self._known:
            if not await self._has_begun(name, upload):
                raise unknown_upload(self._uri / name, upload)
            self._known.add(upload)
        tag = await self._stage(name, upload, number, data)
        return UploadedPart(number, tag, await asyncio.to_thread(crc64, data), len(data))
