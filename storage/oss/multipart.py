"""Multipart uploads to OSS: each part is compared by its CRC-64/XZ, and so is the object.

A part's tag is its ETag, a semicolon and that CRC, so that a process that starts again can combine them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from html import escape, unescape

from podferry.contract.errors import FerryError, NotFound, Unavailable
from podferry.storage.checksum.checksums import ChecksumKind, combine_crcs, crc, crc64, is_computable
from podferry.storage.multipart import (
    UploadedPart,
    check_part,
    check_part_bytes,
    ordered_parts,
    unknown_upload,
)
from podferry.storage.object_names import checked_name
from podferry.storage.oss.client import OssClient, OssRequest
from podferry.storage.oss.content_md5 import content_md5
from podferry.storage.oss.response import CRC_HEADER, OssResponse, OssResponseError
from podferry.storage.timeouts_and_limits import KIB, Limits

GONE_CODES = frozenset({"NoSuchUpload", "InvalidPart"})
"""Codes for an upload or a part that does not exist."""
UPLOAD_ID = re.compile(r"<UploadId>([^<]{1,200})</UploadId>")
XZ = ChecksumKind.CRC64XZ


class OssMultipart:
    """Multipart uploads to one bucket, within the limits of "Multipart upload", Alibaba's OSS user guide."""

    min_part_bytes = 100 * KIB
    max_part_bytes = 5 << 30
    max_parts = 10_000

    def __init__(self, client: OssClient, limits: Limits) -> None:
        self._client, self._uri, self._limits = client, client.access.uri, limits
        self._computable = is_computable(XZ)

    async def begin(self, name: str, part_bytes: int) -> str:
        """See `MultipartStore.begin`."""
        check_part_bytes(self._uri / checked_name(name), part_bytes, self.min_part_bytes)
        response = await self._client.send(OssRequest("POST", name, {"uploads": ""}))
        found = UPLOAD_ID.search(response.text)
        if found is None:
            what = f"the store did not start the upload of {self._uri / name}"
            raise Unavailable.of(what, f"no UploadId; {self._client.location.address}", "Try again")
        return unescape(found[1])

    async def send(self, name: str, upload: str, number: int, data: bytes | memoryview) -> UploadedPart:
        """See `MultipartStore.send`."""
        self._check_upload(name, upload)
        check_part(self._uri / name, number, len(data), self.max_part_bytes, self.max_parts)
        own, expected = await asyncio.to_thread(self._checksums, data)
        # Without a checksum to compare, the server compares a digest, which costs more.
        headers = {} if expected else {"Content-MD5": await asyncio.to_thread(content_md5, data)}
        query = {"partNumber": str(number), "uploadId": upload}
        response = await self._send_for_upload(name, upload, OssRequest("PUT", name, query, headers, data))
        received = response.headers.get(CRC_HEADER, expected)
        if expected and received != expected:
            what = f"part {number} of {self._uri / name} arrived damaged"
            raise Unavailable.of(what, f"CRC64 {received}, not {expected}", "Send it again")
        return UploadedPart(number, f"{response.headers.get('ETag', '')};{expected}", own, len(data))

    async def complete(self, name: str, upload: str, parts: Sequence[UploadedPart]) -> None:
        """See `MultipartStore.complete`."""
        self._check_upload(name, upload)
        ordered = ordered_parts(self._uri / name, parts)
        request = OssRequest(
            "POST",
            name,
            {"uploadId": upload},
            body=completion_xml(ordered),
            timeout_seconds=self._limits.request_seconds,  # the server may assemble the parts first
        )
        size, expected = sum(part.size for part in ordered), combined_crc(ordered)
        try:
            response = await self._send_for_upload(name, upload, request)
        except NotFound:
            if not await self._is_stored(name, size, expected):
                raise
            return
        if expected and response.headers.get(CRC_HEADER, expected) != expected:
            raise unknown_upload(self._uri / name, upload, "the store has another object")

    async def abort(self, name: str, upload: str) -> None:
        """See `MultipartStore.abort`."""
        checked_name(name)
        if upload:
            with suppress(NotFound):
                request = OssRequest("DELETE", name, {"uploadId": upload})
                await self._send_for_upload(name, upload, request)

    async def close(self) -> None:
        """Nothing: the store closes its client."""

    def _checksums(self, data: bytes | memoryview) -> tuple[int, str]:
        """CRC-64/NVME, and CRC-64/XZ as OSS writes it."""
        return crc64(data), str(crc(XZ, data)) if self._computable else ""

    def _check_upload(self, name: str, upload: str) -> None:
        checked_name(name)
        if not upload:
            raise unknown_upload(self._uri / name, upload)

    async def _send_for_upload(self, name: str, upload: str, request: OssRequest) -> OssResponse:
        """The response to a request about an upload, which may no longer exist."""
        try:
            return await self._client.send(request)
        except FerryError as error:
            response = error.__cause__
            if isinstance(response, OssResponseError) and response.error_code in GONE_CODES:
                raise unknown_upload(self._uri / name, upload, response.error_code) from response
            raise

    async def _is_stored(self, name: str, size: int, expected: str) -> bool:
        """Whether the object consists of these parts."""
        try:
            headers = (await self._client.send(OssRequest("HEAD", name))).headers
        except NotFound:
            return False
        stated = headers.get("Content-Length"), headers.get(CRC_HEADER)
        return bool(expected) and stated == (str(size), expected)


def completion_xml(parts: Sequence[UploadedPart]) -> bytes:
    """The body of a completion: "CompleteMultipartUpload", Alibaba's OSS API reference."""
    listed = "".join(
        f"<Part><PartNumber>{part.number}</PartNumber><ETag>{escape(part.tag.partition(';')[0])}</ETag></Part>"
        for part in parts
    )
    return f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()


def combined_crc(parts: Sequence[UploadedPart]) -> str:
    """CRC-64/XZ of the object as OSS writes it; empty if a part has none."""
    stated = [part.tag.partition(";")[2] for part in parts]
    if not all(text.isascii() and text.isdecimal() for text in stated):
        return ""
    combined = 0
    for part, text in zip(parts, stated, strict=True):
        combined = combine_crcs(XZ, combined, int(text), part.size)
    return str(combined)
