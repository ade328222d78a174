"""Reads a dataset straight from its store, as training code without podferry does: for comparisons."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

VARIABLES = {
    "AWS_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN": "AWS_SESSION_TOKEN",
    "AWS_REGION": "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL": "AWS_ENDPOINT_URL",
}
"""The variable that boto3 reads, for each key of a Secret."""


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
