"""Uploads in parts to S3 and what speaks it, with a checksum of the whole object where the server keeps one.

With each part goes its CRC-64/NVME, and with the completion that of the whole object, joined from them: the
server refuses whatever is not what was sent ("Checking object integrity", Amazon S3). A server that does not
answer to that checksum is one that may ignore it: there the signature covers each part, by its SHA-256, which
costs more. Which of the two an upload has is written in the text that names it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from html import escape, unescape

from podferry.contract.errors import (
    AccessDenied,
    FerryError,
    NotFound,
    PermanentError,
    TemporaryError,
    Unavailable,
)
from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import ObjectChecksum, crc64, whole_of
from podferry.storage.limits import MIB, Limits
from podferry.storage.multipart import UploadedPart, check_begin, check_part, in_order, unknown_upload
from podferry.storage.object_names import checked_name
from podferry.storage.s3.client import S3Client, S3Request, S3Response, refusal
from podferry.storage.s3.credentials import S3CredentialsProvider, credentials_provider
from podferry.storage.s3.endpoint import S3Access, s3_access
from podferry.storage.store import StoreConfig

CHECKSUM = "x-amz-checksum-crc64nvme"
WITH_CHECKSUM = {"x-amz-checksum-algorithm": "CRC64NVME", "x-amz-checksum-type": "FULL_OBJECT"}
KEPT, SIGNED = "crc64nvme", "sha256"
"""How parts are verified: by the checksum that the server keeps, or by the signature."""
LOST = frozenset({"NoSuchUpload", "InvalidPart"})
"""Codes of an upload, or a part of it, that is not there: "Error responses", Amazon S3 API reference."""
UPLOAD_ID = re.compile(r"<UploadId>([^<]{1,2048})</UploadId>")
MD5_TAG = re.compile(r'"([0-9a-f]{32})"')


class S3Multipart:
    """Parts of objects of one bucket.

    Attributes:
        min_part_bytes: "Amazon S3 multipart upload limits": 5 MiB.
        max_parts: The same: 10,000.
    """

    min_part_bytes = 5 * MIB
    max_parts = 10_000
    largest = 5 << 30
    """Bytes of the largest part: the same source."""

    def __init__(self, access: S3Access, credentials: S3CredentialsProvider, limits: Limits) -> None:
        self._requests = S3Client(access, credentials, limits)
        self._uri = access.uri
        self._limits = limits
        self._keeps = True  # until the server shows that it does not

    async def begin(self, name: str, part_bytes: int) -> str:
        """See `MultipartStore.begin`."""
        check_begin(self._uri / checked_name(name), part_bytes, self.min_part_bytes)
        if self._keeps:
            try:
                answer = await self._requests.send(S3Request("POST", name, {"uploads": ""}, WITH_CHECKSUM))
            except FerryError as error:
                if not _may_be_the_checksum(error):
                    raise
            else:
                self._keeps = answer.headers.get("x-amz-checksum-algorithm", "").upper() == "CRC64NVME"
                return f"{KEPT if self._keeps else SIGNED}:{self._upload_id(name, answer)}"
        answer = await self._requests.send(S3Request("POST", name, {"uploads": ""}))
        self._keeps = False
        return f"{SIGNED}:{self._upload_id(name, answer)}"

    async def send(self, name: str, upload: str, number: int, data: bytes | memoryview) -> UploadedPart:
        """See `MultipartStore.send`."""
        how, upload_id = self._named(name, upload)
        uri = self._uri / name
        check_part(uri, number, len(data), self.largest, self.max_parts)
        checksum = await asyncio.to_thread(crc64, data)
        headers = {CHECKSUM: _base64(checksum)} if how == KEPT else {}
        query = {"partNumber": str(number), "uploadId": upload_id}
        answer = await self._about(name, upload, S3Request("PUT", name, query, headers, data, how == SIGNED))
        if how == KEPT and answer.headers.get(CHECKSUM, headers[CHECKSUM]) != headers[CHECKSUM]:
            measured = f"{answer.headers[CHECKSUM]}, not {headers[CHECKSUM]}"
            raise Unavailable.of(f"part {number} of {uri} arrived damaged", measured, "Send it again")
        return UploadedPart(number, answer.headers.get("ETag", ""), checksum, len(data))

    async def complete(self, name: str, upload: str, receipts: Sequence[UploadedPart]) -> None:
        """See `MultipartStore.complete`."""
        how, upload_id = self._named(name, upload)
        ordered = in_order(self._uri / name, receipts)
        whole = whole_of(ordered)
        headers = _promise(whole) if how == KEPT else {}
        body = completion(ordered, checksums=how == KEPT)
        request = S3Request(
            "POST",
            name,
            {"uploadId": upload_id},
            headers,
            body,
            seconds=self._limits.request_seconds,  # the server may put the parts together first
        )
        try:
            await self._about(name, upload, request)
        except NotFound:
            if await self._is_there(name, whole, ordered) is not True:
                raise
        else:
            # A server that has swept the upload may answer so because some object has the name.
            if await self._is_there(name, whole, ordered) is False:
                raise unknown_upload(self._uri / name, upload, "another object came of it, or none")

    async def abort(self, name: str, upload: str) -> None:
        """See `MultipartStore.abort`."""
        checked_name(name)
        with suppress(NotFound):
            _, upload_id = self._named(name, upload)
            await self._about(name, upload, S3Request("DELETE", name, {"uploadId": upload_id}))

    async def close(self) -> None:
        """Give back the connections."""
        await self._requests.close()

    def _named(self, name: str, upload: str) -> tuple[str, str]:
        """How the parts of an upload are verified, and the server's own name of it."""
        how, _, upload_id = upload.partition(":")
        checked_name(name)
        if how not in (KEPT, SIGNED) or not upload_id:
            raise unknown_upload(self._uri / name, upload)
        return how, upload_id

    def _upload_id(self, name: str, answer: S3Response) -> str:
        found = UPLOAD_ID.search(answer.text)
        if found is None:
            raise Unavailable.of(
                f"the store began no upload of {self._uri / name}",
                f"an answer of {len(answer.text)} characters without an UploadId; {self._requests.place.at}",
                "Check that the endpoint is that of an S3 service",
            )
        return unescape(found[1])

    async def _about(self, name: str, upload: str, request: S3Request) -> S3Response:
        """The answer to a request about an upload, which may be there no more."""
        try:
            return await self._requests.send(request)
        except FerryError as error:
            refused = refusal(error)
            if refused is not None and refused.error_code in LOST:
                raise unknown_upload(self._uri / name, upload, refused.error_code) from refused
            if refused is None and request.body:
                await self._ask(name, upload)
            raise

    async def _ask(self, name: str, upload: str) -> None:
        """Raise what is wrong with an upload, where a connection broke while a body was sent.

        A server that refuses before it has read the body may close the connection: its answer is then lost.
        Leave to list the parts may be missing where that to send them is given: then nothing is said.
        """
        _, upload_id = self._named(name, upload)
        query = {"max-parts": "1", "uploadId": upload_id}
        try:
            await self._about(name, upload, S3Request("GET", name, query, tries=1))
        except TemporaryError:
            return
        except AccessDenied as error:
            refused = refusal(error)
            if refused is not None and refused.error_code != "AccessDenied":
                raise

    async def _is_there(
        self, name: str, whole: ObjectChecksum, receipts: Sequence[UploadedPart]
    ) -> bool | None:
        """Whether the object is what these parts make; None where the store does not tell."""
        try:
            answer = await self._requests.send(
                S3Request("HEAD", name, headers={"x-amz-checksum-mode": "ENABLED"})
            )
        except NotFound:
            return False
        except PermanentError:
            return None
        if answer.headers.get("Content-Length") != str(whole.size):
            return False
        if CHECKSUM in answer.headers:
            return answer.headers[CHECKSUM] == _base64(whole.crc64)
        # With some encryptions no tag is an MD5 sum: then another one means nothing.
        return True if answer.headers.get("ETag") == tag_of(receipts) else None


def s3_multipart(uri: Uri, config: StoreConfig, limits: Limits) -> S3Multipart | None:
    """Multipart uploads to the S3 store of a URI, or None if only obstore finds its credentials."""
    access = s3_access(uri, config)
    credentials = credentials_provider(access)
    return None if credentials is None else S3Multipart(access, credentials, limits)


def completion(receipts: Sequence[UploadedPart], *, checksums: bool) -> bytes:
    """The body of a completion: "CompleteMultipartUpload", Amazon S3 API reference."""
    listed = "".join(
        f"<Part><ETag>{escape(receipt.tag)}</ETag><PartNumber>{receipt.number}</PartNumber>"
        + (f"<ChecksumCRC64NVME>{_base64(receipt.crc64)}</ChecksumCRC64NVME>" if checksums else "")
        + "</Part>"
        for receipt in receipts
    )
    space = "http://s3.amazonaws.com/doc/2006-03-01/"
    return f'<CompleteMultipartUpload xmlns="{space}">{listed}</CompleteMultipartUpload>'.encode()


def tag_of(receipts: Sequence[UploadedPart]) -> str:
    """The ETag that an object of these parts gets, where those of the parts are MD5 sums; else empty.

    It is the MD5 of the parts' sums, with their number: every known server follows Amazon's here.
    """
    found = [MD5_TAG.fullmatch(receipt.tag) for receipt in receipts]
    sums = b"".join(bytes.fromhex(match[1]) for match in found if match)
    digest = hashlib.md5(sums, usedforsecurity=False).hexdigest()
    return f'"{digest}-{len(receipts)}"' if all(found) else ""


def _promise(whole: ObjectChecksum) -> dict[str, str]:
    kind = {"x-amz-checksum-type": "FULL_OBJECT", "x-amz-mp-object-size": str(whole.size)}
    return {CHECKSUM: _base64(whole.crc64), **kind}


def _may_be_the_checksum(error: FerryError) -> bool:
    """Whether a refusal may mean that the server does not know the checksum; servers differ in the code."""
    refused = refusal(error)
    return refused is not None and refused.status in (400, 501)


def _base64(checksum: int) -> str:
    return base64.b64encode(checksum.to_bytes(8, "big")).decode()
