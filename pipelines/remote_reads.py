"""Reads a dataset straight from its store, as training code without podferry does: for comparisons."""

from __future__ import annotations

import os
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

OSS_VARIABLES = (
    "OSS_ACCESS_KEY_ID",
    "OSS_ACCESS_KEY_SECRET",
    "OSS_SESSION_TOKEN",
    "OSS_REGION",
    "OSS_ENDPOINT",
)
VARIABLES = {
    "AWS_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN": "AWS_SESSION_TOKEN",
    "AWS_REGION": "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL": "AWS_ENDPOINT_URL",
    **{name: name for name in OSS_VARIABLES},
}
"""The variable that boto3 or Alibaba's SDK reads, for each key of a Secret."""


def reader_of(dataset: str) -> Callable[[str], bytes]:
    """Reads files of a dataset by name, one after another over one connection, with the store's own SDK.

    Args:
        dataset: Its URI or reference, in S3 or OSS.
    """
    place = urlsplit(dataset.partition("#")[0])
    return _oss_reader(place) if place.scheme == "oss" else _s3_reader(place)


def _s3_reader(place: SplitResult) -> Callable[[str], bytes]:
    import boto3  # noqa: PLC0415 - takes half a second, and is for comparisons alone

    client = boto3.client("s3")
    prefix = place.path.strip("/")

    def read(name: str) -> bytes:
        found: bytes = client.get_object(Bucket=place.netloc, Key=f"{prefix}/{name}")["Body"].read()
        return found

    return read


def _oss_reader(place: SplitResult) -> Callable[[str], bytes]:
    import alibabacloud_oss_v2 as oss  # noqa: PLC0415 - for comparisons alone, too

    config = oss.config.load_default()
    config.credentials_provider = oss.credentials.EnvironmentVariableCredentialsProvider()
    config.region, config.endpoint = os.environ["OSS_REGION"], os.environ.get("OSS_ENDPOINT")
    client = oss.Client(config)
    prefix = place.path.strip("/")

    def read(name: str) -> bytes:
        request = oss.GetObjectRequest(place.netloc, f"{prefix}/{name}")
        found: bytes = client.get_object(request).body.content
        return found

    return read
