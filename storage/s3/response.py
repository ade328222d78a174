"""What an S3 service responds, and responses that are not its own."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from podferry.storage.errors.response_body import read_response_body
from podferry.storage.http.page_detection import is_html
from podferry.storage.http.store_client import StoreResponse, StoreResponseError

BUCKET_REGION_HEADER = "x-amz-bucket-region"
PAGE_STATUSES = (404, 405)
"""With a page, they come from a web server. Those of other errors may be a gateway's."""
EXCERPT_CHARACTERS = 60
"""Enough to recognize a page by."""
MAYBE_SECRET = re.compile(r"[A-Za-z0-9+=_-]{20,}")
"""A page may repeat the headers of the request, with a session token in them."""


class S3ResponseError(StoreResponseError):
    """An error response, read by `vendor_fields`; `status` is 0 if it came with a status of success."""

    def __init__(self, response: StoreResponse) -> None:
        body = read_response_body(response.text)
        super().__init__(f"{response.status} {body.code}")
        self.status = 0 if response.status < 300 else response.status
        self.error_code, self.detail = body.code, body.detail
        self.region = body.region or response.headers.get(BUCKET_REGION_HEADER, "")


class NotFromS3(S3ResponseError):
    """A response that no S3 service sends: something else listens at the endpoint, or is between."""

    by_service = False

    def __init__(self, response: StoreResponse) -> None:
        super().__init__(response)
        self.status, self.detail = response.status, excerpt(response)


class RedirectedAway(NotFromS3):
    """A redirection to another page, such as a login, or one of a service that is maintained."""


def checked(response: StoreResponse) -> StoreResponse:
    """The response if it reports success.

    S3 sends some errors with a status of success, and no redirection to elsewhere without a code or a region.

    Raises:
        S3ResponseError: It does not.
    """
    if 200 <= response.status < 300 and "<Error>" not in response.text:
        return response
    error = S3ResponseError(response)
    leads_elsewhere = 300 <= response.status < 400 and "Location" in response.headers
    if response.status in PAGE_STATUSES and _has_page(response):
        raise NotFromS3(response)
    raise RedirectedAway(response) if leads_elsewhere and not (error.error_code or error.region) else error


def _has_page(response: StoreResponse) -> bool:
    """Whether there is a page to see: a response to HEAD has none, and moto gives it the type of one."""
    return bool(response.text) and is_html(response.headers.get("Content-Type", ""))


def excerpt(response: StoreResponse) -> str:
    """What identifies a response to a reader: its type and first characters, or where it leads."""
    if location := response.headers.get("Location"):
        target = urlsplit(location)._replace(query="", fragment="")  # which may have a token
        shown = target._replace(netloc=target.netloc.rpartition("@")[2]).geturl()
        return f"Location {shown[:200]!a}"
    kind = response.headers.get("Content-Type", "no content type")
    if encoding := response.headers.get("Content-Encoding"):
        return f"{kind[:EXCERPT_CHARACTERS]}: Content-Encoding {encoding[:20]}, which was not requested"
    text = MAYBE_SECRET.sub("…", response.text[:4096]).strip()
    said = f"{text[:EXCERPT_CHARACTERS]!a}" if text else "an empty body"
    return f"{kind[:EXCERPT_CHARACTERS]}: {said}"
