"""What OSS responds, and responses that are not its own."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

import msgspec

from podferry.storage.errors.response_body import read_response_body

REQUEST_ID = "x-oss-request-id"
"""A header of every response of OSS: "Common response headers", Alibaba's OSS API reference."""
CRC_HEADER = "x-oss-hash-crc64ecma"
ENDPOINT = re.compile(r"<Endpoint>([A-Za-z0-9.:-]{1,200})</Endpoint>")
KMS = re.compile(r"<Message>[^<]{0,200}\bkms\b", re.IGNORECASE)
WRONG_REGION = re.compile(r"<Message>[^<]{0,200}\bsigning region\b", re.IGNORECASE)
EXCERPT_CHARACTERS = 60


class OssResponse(msgspec.Struct, frozen=True):
    """A response: status, headers by case-insensitive name, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytearray

    @property
    def text(self) -> str:
        """The body as text; for an error that has none, as after HEAD, what the header has."""
        if self.body:
            return self.body.decode(errors="replace")
        try:
            return base64.b64decode(self.headers.get("x-oss-err", "")).decode(errors="replace")
        except binascii.Error:
            return ""


class OssResponseError(Exception):
    """An error response, read by `vendor_fields`.

    Attributes:
        status, error_code, detail: See `podferry.storage.errors.vendor_fields`.
        endpoint: Where the bucket is, if it is elsewhere.
        wrong_region: Whether the request was signed for another region than the endpoint's.
    """

    def __init__(self, response: OssResponse) -> None:
        text = response.text
        body = read_response_body(text)
        super().__init__(f"{response.status} {body.code}")
        self.status = 0 if response.status < 300 else response.status
        self.error_code, self.detail = body.code, body.detail
        if body.code == "AccessDenied" and KMS.search(text):
            self.error_code = "KMS.AccessDeniedException"
        found = ENDPOINT.search(text)
        self.endpoint = found[1] if found and body.code == "AccessDenied" else ""
        self.wrong_region = body.code == "InvalidArgument" and bool(WRONG_REGION.search(text))


class NotFromOss(OssResponseError):
    """A response that OSS does not send: something else listens at the endpoint, or is between."""

    def __init__(self, response: OssResponse) -> None:
        super().__init__(response)
        kind = response.headers.get("Content-Type", "no content type")[:EXCERPT_CHARACTERS]
        self.detail = f"{kind}, no {REQUEST_ID}"


def checked(response: OssResponse, *, document: bool) -> OssResponse:
    """The response if it reports success.

    Args:
        response: What came.
        document: Whether the body is OSS's own, and not the content of an object.

    Raises:
        OssResponseError: It does not.
    """
    if 200 <= response.status < 300 and not (document and b"<Error>" in response.body):
        return response
    error = OssResponseError(response)
    foreign = not error.error_code and REQUEST_ID not in response.headers and response.status < 500
    raise NotFromOss(response) if foreign else error
