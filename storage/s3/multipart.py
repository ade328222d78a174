"""Multipart uploads to S3 and compatible services.

Each part is sent with its CRC-64/NVME, and the completion with that of the object, combined from them: the
server refuses anything else ("Checking object integrity", Amazon S3). A server whose response does not name
the checksum may ignore it: then each part's SHA-256 is signed, which costs more.
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
from podferry.storage.checksum.checksums import ObjectChecksum, crc64, object_checksum
from podferry.storage.http.store_client import StoreRequest, StoreResponse, error_response
from podferry.storage.multipart import (
    UploadedPart,
    check_part,
    check_part_bytes,
    ordered_parts,
    unknown_upload,
)
from podferry.storage.object_names import checked_name
from podferry.storage.s3.client import S3Client
from podferry.storage.s3.credentials import S3CredentialsProvider, credentials_provider
from podferry.storage.s3.endpoint import S3Access, s3_access
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import MIB, Limits

CHECKSUM_HEADER = "x-amz-checksum-crc64nvme"
ALGORITHM_HEADERS = {"x-amz-checksum-algorithm": "CRC64NVME", "x-amz-checksum-type": "FULL_OBJECT"}
STORED_CRC64, SIGNED_SHA256 = "crc64nvme", "sha256"
"""How an upload's parts are verified: by the checksum that the server stores, or by the signature."""
GONE_CODES = frozenset({"NoSuchUpload", "InvalidPart", "XMinioInvalidResourceName"})
"""Codes for an upload or a part that does not exist: "Error responses", Amazon S3 API reference. The last is
MinIO's, for an identifier that it cannot have given."""
UPLOAD_ID = re.compile(r"<UploadId>([^<]{1,2048})</UploadId>")
MD5_ETAG = re.compile(r'"([0-9a-f]{32})"')


class S3Multipart:
    """Multipart uploads to one bucket, within "Amazon S3 multipart upload limits".

    Attributes:
        client: Sends the requests.
    """

    min_part_bytes = 5 * MIB
    max_part_bytes = 5 << 30
    max_parts = 10_000

    def __init__(self, access: S3Access, credentials: S3CredentialsProvider, limits: Limits) -> None:
        self.client = S3Client(access, credentials, limits)
        self._uri = access.uri
        self._limits = limits
        self._stores_checksum = True  # until the server shows that it does not

    async def begin(self, name: str, part_bytes: int) -> str:
        """See `MultipartStore.begin`."""
        check_part_bytes(self._uri / checked_name(name), part_bytes, self.min_part_bytes)
        if self._stores_checksum:
            request = StoreRequest("POST", name, {"uploads": ""}, ALGORITHM_HEADERS)
            try:
                response = await self.client.send(request)
            except FerryError as error:
                if not _may_lack_the_checksum(error):
                    raise
            else:
                algorithm = response.headers.get("x-amz-checksum-algorithm", "")
                self._stores_checksum = algorithm.upper() == "CRC64NVME"
                verification = STORED_CRC64 if self._stores_checksum else SIGNED_SHA256
                return f"{verification}:{self._upload_id(name, response)}"
        response = await self.client.send(StoreRequest("POST", name, {"uploads": ""}))
        self._stores_checksum = False
        return f"{SIGNED_SHA256}:{self._upload_id(name, response)}"

    async def send(self, name: str, upload: str, number: int, data: bytes | memoryview) -> UploadedPart:
        """See `MultipartStore.send`."""
        verification, upload_id = self._parsed(name, upload)
        check_part(self._uri / name, number, len(data), self.max_part_bytes, self.max_parts)
        checksum = await asyncio.to_thread(crc64, data)
        sent = _base64(checksum)
        headers = {CHECKSUM_HEADER: sent} if verification == STORED_CRC64 else {}
        query = {"partNumber": str(number), "uploadId": upload_id}
        request = StoreRequest("PUT", name, query, headers, data, signed_body=verification == SIGNED_SHA256)
        response = await self._send_for_upload(name, upload, request)
        received = response.headers.get(CHECKSUM_HEADER, sent)
        if verification == STORED_CRC64 and received != sent:
            what = f"part {number} of {self._uri / name} arrived damaged"
            raise Unavailable.of(what, f"{received}, not {sent}", "Send it again")
        return UploadedPart(number, response.headers.get("ETag", ""), checksum, len(data))

    async def complete(self, name: str, upload: str, parts: Sequence[UploadedPart]) -> None:
        """See `MultipartStore.complete`."""
        verification, upload_id = self._parsed(name, upload)
        ordered = ordered_parts(self._uri / name, parts)
        checksum = object_checksum(ordered)
        checksums = verification == STORED_CRC64
        request = StoreRequest(
            "POST",
            name,
            {"uploadId": upload_id},
            _object_headers(checksum) if checksums else {},
            completion_xml(ordered, checksums=checksums),
            timeout_seconds=self._limits.request_seconds,  # the server may assemble the parts first
        )
        try:
            await self._send_for_upload(name, upload, request)
        except NotFound:
            if await self._is_stored(name, checksum, ordered) is not True:
                raise
        else:
            # A server that has removed the upload may report success if any object has the name.
            if await self._is_stored(name, checksum, ordered) is False:
                raise unknown_upload(self._uri / name, upload, "the store has another object, or none")

    async def abort(self, name: str, upload: str) -> None:
        """See `MultipartStore.abort`."""
        checked_name(name)
        with suppress(NotFound):
            _, upload_id = self._parsed(name, upload)
            await self._send_for_upload(name, upload, StoreRequest("DELETE", name, {"uploadId": upload_id}))

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    def _parsed(self, name: str, upload: str) -> tuple[str, str]:
        """How the parts of an upload are verified, and the server's identifier of it."""
        verification, _, upload_id = upload.partition(":")
        checked_name(name)
        if verification not in (STORED_CRC64, SIGNED_SHA256) or not upload_id:
            raise unknown_upload(self._uri / name, upload)
        return verification, upload_id

    def _upload_id(self, name: str, response: StoreResponse) -> str:
        found = UPLOAD_ID.search(response.text)
        if found is None:
            what = f"the store did not start the upload of {self._uri / name}"
            answer = f"no UploadId in a response of {len(response.text)} characters"
            measured = f"{answer}; {self.client.location.address}"
            raise Unavailable.of(what, measured, "Check that the endpoint is an S3 service")
        return unescape(found[1])

    async def _send_for_upload(self, name: str, upload: str, request: StoreRequest) -> StoreResponse:
        """The response to a request about an upload, which may no longer exist."""
        try:
            return await self.client.send(request)
        except FerryError as error:
            response = error_response(error)
            if response is not None and response.error_code in GONE_CODES:
                raise unknown_upload(self._uri / name, upload, response.error_code) from response
            if response is None and request.body:
                await self._raise_lost_error(name, upload)
            raise

    async def _raise_lost_error(self, name: str, upload: str) -> None:
        """Raise what is wrong with an upload after a connection broke while a body was sent.

        A server that refuses a request before it has read the body may close the connection, which loses its
        response. Credentials that may send parts may lack the permission to list them: that raises nothing.
        """
        _, upload_id = self._parsed(name, upload)
        request = StoreRequest("GET", name, {"max-parts": "1", "uploadId": upload_id}, attempts=1)
        try:
            await self._send_for_upload(name, upload, request)
        except TemporaryError:
            return
        except AccessDenied as error:
            response = error_response(error)
            if response is not None and response.error_code != "AccessDenied":
                raise

    async def _is_stored(
        self, name: str, checksum: ObjectChecksum, parts: Sequence[UploadedPart]
    ) -> bool | None:
        """Whether the object consists of these parts, or None if the store does not say."""
        request = StoreRequest("HEAD", name, headers={"x-amz-checksum-mode": "ENABLED"})
        try:
            response = await self.client.send(request)
        except NotFound:
            return False
        except PermanentError:
            return None
        if response.headers.get("Content-Length") != str(checksum.size):
            return False
        if CHECKSUM_HEADER in response.headers:
            return response.headers[CHECKSUM_HEADER] == _base64(checksum.crc64)
        # With some kinds of encryption no ETag is an MD5: then a different one means nothing.
        return True if response.headers.get("ETag") == multipart_etag(parts) else None


def s3_multipart(uri: Uri, config: StoreConfig, limits: Limits) -> S3Multipart | None:
    """Multipart uploads to the S3 store of a URI, or None if only obstore finds its credentials."""
    access = s3_access(uri, config)
    credentials = credentials_provider(access)
    return None if credentials is None else S3Multipart(access, credentials, limits)


def completion_xml(parts: Sequence[UploadedPart], *, checksums: bool) -> bytes:
    """The body of a completion: "CompleteMultipartUpload", Amazon S3 API reference."""
    listed = "".join(
        f"<Part><ETag>{escape(part.tag)}</ETag><PartNumber>{part.number}</PartNumber>"
        + (f"<ChecksumCRC64NVME>{_base64(part.crc64)}</ChecksumCRC64NVME>" if checksums else "")
        + "</Part>"
        for part in parts
    )
    namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
    return f'<CompleteMultipartUpload xmlns="{namespace}">{listed}</CompleteMultipartUpload>'.encode()


def multipart_etag(parts: Sequence[UploadedPart]) -> str:
    """The ETag of an object of these parts if theirs are MD5 digests, else empty.

    It is the MD5 of the parts' digests, with their number: every known server follows Amazon here.
    """
    found = [MD5_ETAG.fullmatch(part.tag) for part in parts]
    digests = b"".join(bytes.fromhex(match[1]) for match in found if match)
    digest = hashlib.md5(digests, usedforsecurity=False).hexdigest()
    return f'"{digest}-{len(parts)}"' if all(found) else ""


def _object_headers(checksum: ObjectChecksum) -> dict[str, str]:
    headers = {"x-amz-checksum-type": "FULL_OBJECT", "x-amz-mp-object-size": str(checksum.size)}
    return {CHECKSUM_HEADER: _base64(checksum.crc64), **headers}


def _may_lack_the_checksum(error: FerryError) -> bool:
    """Whether the server may not know the checksum; servers differ in the code."""
    response = error_response(error)
    return response is not None and response.status in (400, 501)


def _base64(checksum: int) -> str:
    return base64.b64encode(checksum.to_bytes(8, "big")).decode()
