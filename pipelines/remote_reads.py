"""Reads a dataset straight from its store, as training code without podferry does: for comparisons."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit


def reader_of(dataset: str) -> Callable[[str], bytes]:
    """Reads files of a dataset in S3 by name, one after another over one connection, with boto3.

    Args:
        dataset: Its URI or reference.
    """
    import boto3  # noqa: PLC0415 - takes half a second, and is for comparisons alone

    client = boto3.client("s3")
    place = urlsplit(dataset.partition("#")[0])
    prefix = place.path.strip("/")

    def read(name: str) -> bytes:
        found: bytes = client.get_object(Bucket=place.netloc, Key=f"{prefix}/{name}")["Body"].read()
        return found

    return read
