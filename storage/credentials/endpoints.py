"""Vendors of S3 services, and the check of an endpoint."""

from __future__ import annotations

import msgspec

from podferry.contract.errors import InvalidSpec


class S3Vendor(msgspec.Struct, frozen=True):
    """A vendor's S3 service: the endpoint's URL, with `{region}`, and the default region."""

    endpoint: str
    region: str


S3_VENDORS = {
    "s3": S3Vendor("https://s3.{region}.amazonaws.com", "us-east-1"),
    "s3a": S3Vendor("https://s3.{region}.amazonaws.com", "us-east-1"),
    "bos": S3Vendor("https://s3.{region}.bcebos.com", "bj"),
}


def checked_endpoint(endpoint: str) -> str:
    """An endpoint without a trailing slash.

    Raises:
        InvalidSpec: It is not an http or https URL.
    """
    if not endpoint.startswith(("http://", "https://")):
        remedy = "Write http://HOST:PORT or https://HOST"
        raise InvalidSpec.of("an endpoint must be a URL", repr(endpoint), remedy)
    return endpoint.rstrip("/")
