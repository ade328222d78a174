"""Vendors and endpoints."""

from __future__ import annotations

import msgspec

from podferry.contract.errors import InvalidSpec


class S3Vendor(msgspec.Struct, frozen=True):
    """A service that speaks S3.

    Attributes:
        endpoint: Its address, with `{region}`.
        region: Where none is named.
    """

    endpoint: str
    region: str


S3_VENDORS = {
    "s3": S3Vendor("https://s3.{region}.amazonaws.com", "us-east-1"),
    "s3a": S3Vendor("https://s3.{region}.amazonaws.com", "us-east-1"),
    "bos": S3Vendor("https://s3.{region}.bcebos.com", "bj"),
}


def checked_endpoint(endpoint: str) -> str:
    """An endpoint without its last slash.

    Raises:
        InvalidSpec: It is no http or https URL.
    """
    if not endpoint.startswith(("http://", "https://")):
        raise InvalidSpec.of(
            "an endpoint must be a URL", repr(endpoint), "Write http://HOST:PORT or https://HOST"
        )
    return endpoint.rstrip("/")
