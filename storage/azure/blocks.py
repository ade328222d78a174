"""Uploads to Azure in blocks that survive a restart.

Blocks are staged under the blob's name and become the blob when their list is committed. Azure keeps those
that are not committed for a week, and then deletes them by itself. Each one is sent with its MD5, which the
service verifies ("Put Block", Azure Storage REST API reference).

What S3 knows about an upload has no counterpart: a first block of one byte, which is never committed, shows
that the upload exists. Uploads of one name share its staged blocks: when one is committed, Azure discards
those of the others, which have to start again.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Sequence

from podferry.contract.errors import AccessDenied, FerryError, NotFound
from podferry.storage.azure.client import AzureClient
from podferry.storage.azure.endpoint import AzureAccess
from podferry.storage.http.store_client import StoreRequest, error_response
from podferry.storage.multipart import UploadedPart, ordered_parts, unknown_upload
from podferry.storage.object_names import checked_name
from podferry.storage.staged_uploads import StagedUploads
from podferry.storage.timeouts_and_limits import MIB, Limits

UPLOAD = re.compile(r"[0-9a-f]{16}")
BLOCK = re.compile(r"<Block><Name>([^<]+)</Name><Size>(\d+)</Size></Block>")
COMMITTED, STAGED = "committed", "uncommitted"


class AzureBlocks(StagedUploads):
    """Uploads to one container, within "Scalability and performance targets for Blob storage".

    Attributes:
        client: Sends the requests.
    """

    max_part_bytes = 4000 * MIB
    max_parts = 50_000
    upload_bytes = 8
    marker = b"\0"

    def __init__(self, access: AzureAccess, limits: Limits) -> None:
        super().__init__(access.uri)
        self.client, self._limits = AzureClient(access, limits), limits
        self._aborted: set[str] = set()

    async def complete(self, name: str, upload: str, parts: Sequence[UploadedPart]) -> None:
        """See `MultipartStore.complete`."""
        checked_name(name)
        ordered = ordered_parts(self._uri / name, parts)
        if upload in self._aborted or not UPLOAD.fullmatch(upload):
            raise unknown_upload(self._uri / name, upload)
        try:
            await self._commit(name, upload, ordered)
        except FerryError as error:
            response = error_response(error)
            if response is None or response.error_code not in ("InvalidBlockList", "BlobNotFound"):
                raise
            if await self._is_stored(name, upload, ordered) is not True:
                raise unknown_upload(self._uri / name, upload, response.error_code) from response
        else:
            if await self._is_stored(name, upload, ordered) is False:
                raise unknown_upload(self._uri / name, upload, "the store has another object, or none")
        self._known.discard(upload)

    async def abort(self, name: str, upload: str) -> None:
        """See `MultipartStore.abort`. There is no request for it: Azure deletes the blocks within a week."""
        checked_name(name)
        self._known.discard(upload)
        self._aborted.add(upload)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    async def _stage(self, name: str, upload: str, number: int, data: bytes | memoryview) -> str:
        """Send a block; its MD5."""
        digest = await asyncio.to_thread(lambda: hashlib.md5(data, usedforsecurity=False).digest())
        md5 = base64.b64encode(digest).decode()
        query = {"comp": "block", "blockid": block_id(upload, number)}
        await self.client.send(StoreRequest("PUT", name, query, {"Content-MD5": md5}, data))
        return digest.hex()

    async def _commit(self, name: str, upload: str, parts: Sequence[UploadedPart]) -> None:
        listed = "".join(f"<Uncommitted>{block_id(upload, part.number)}</Uncommitted>" for part in parts)
        body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{listed}</BlockList>'.encode()
        seconds = self._limits.request_seconds
        request = StoreRequest("PUT", name, {"comp": "blocklist"}, body=body, timeout_seconds=seconds)
        await self.client.send(request)

    async def _has_begun(self, name: str, upload: str) -> bool:
        try:
            valid = upload not in self._aborted and UPLOAD.fullmatch(upload)
            staged = await self._blocks(name, STAGED) if valid else []
        except AccessDenied:  # of who may write but not read: the upload starts again
            staged = []
        return block_id(upload, 0) in {found for found, _ in staged}

    async def _is_stored(self, name: str, upload: str, parts: Sequence[UploadedPart]) -> bool | None:
        """Whether the blob consists of these blocks, or None if the store does not say."""
        try:
            found = await self._blocks(name, COMMITTED)
        except AccessDenied:
            return None
        return found == [(block_id(upload, part.number), part.size) for part in parts]

    async def _blocks(self, name: str, kind: str) -> list[tuple[str, int]]:
        """The identifiers and sizes of a blob's blocks; none if it does not exist."""
        try:
            query = {"comp": "blocklist", "blocklisttype": kind}
            response = await self.client.send(StoreRequest("GET", name, query))
        except NotFound as error:
            if type(error) is NotFound:
                return []
            raise
        return [(found, int(size)) for found, size in BLOCK.findall(response.text)]


def block_id(upload: str, number: int) -> str:
    """The identifier of a block: all those of a blob must have one length."""
    return base64.b64encode(f"{upload}-{number:015}".encode()).decode()
