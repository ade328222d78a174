"""The same files without podferry: downloaded before training, and read from the store while training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SAMPLE = 5
"""Every fifth file is read, and the time is multiplied: that is enough, and the demo stays short."""


@dataclass(frozen=True, slots=True)
class Others:
    """Seconds for all files, one after another, as plain scripts do.

    Attributes:
        download: Listing, and every file copied into memory.
        epoch: One epoch that reads each file from the store.
    """

    download: float
    epoch: float


def others(uri: str, environ: Mapping[str, str], folder: Path, advance: Callable[[int], None]) -> Others:
    """Time both with boto3, on a sample; `advance` hears how many more files have been read."""
    client = _client(environ)
    parts = urlsplit(uri)
    bucket, prefix = parts.netloc, parts.path.strip("/") + "/"
    began = time.monotonic()
    keys = list(_keys(client, bucket, prefix))
    listed = time.monotonic() - began
    sample = list(islice(keys, 0, None, SAMPLE))
    copied = read = 0.0
    for key in sample:  # in turn, so that a busy machine slows both
        copied += _timed(partial(_copy, client, bucket, key, folder / key))
        read += _timed(partial(_body, client, bucket, key))
        advance(2)
    factor = len(keys) / len(sample)
    return Others(listed + factor * copied, factor * read)


def _client(environ: Mapping[str, str]) -> Any:
    import boto3  # noqa: PLC0415 - takes half a second

    return boto3.client(
        "s3",
        endpoint_url=environ["AWS_ENDPOINT_URL"],
        aws_access_key_id=environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environ["AWS_SECRET_ACCESS_KEY"],
        region_name=environ["AWS_DEFAULT_REGION"],
    )


def _timed(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def _copy(client: Any, bucket: str, key: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_body(client, bucket, key))


def _body(client: Any, bucket: str, key: str) -> bytes:
    body: bytes = client.get_object(Bucket=bucket, Key=key)["Body"].read()
    return body


def _keys(client: Any, bucket: str, prefix: str) -> Iterator[str]:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        yield from (item["Key"] for item in page["Contents"])
