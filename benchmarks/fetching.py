"""Peers that are Python libraries, as programs: `fetching.py PROGRAM ENDPOINT BUCKET PREFIX TARGET`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def s3fs_get(endpoint: str, bucket: str, prefix: str, target: str) -> None:
    """`s3fs.get` of a directory, with its own concurrency."""
    from s3fs import S3FileSystem  # noqa: PLC0415 - each program loads its own library alone

    S3FileSystem(endpoint_url=endpoint).get(f"{bucket}/{prefix}/", target, recursive=True)


def transfer(endpoint: str, bucket: str, prefix: str, target: str) -> None:
    """boto3's transfer manager, one for all objects, with its own concurrency."""
    from boto3.s3.transfer import TransferConfig, create_transfer_manager  # noqa: PLC0415

    client = _client(endpoint)
    with create_transfer_manager(client, TransferConfig()) as manager:
        begun = [
            manager.download(bucket, key, str(path)) for key, path in _wanted(client, bucket, prefix, target)
        ]
        for one in begun:
            one.result()


def loop(endpoint: str, bucket: str, prefix: str, target: str) -> None:
    """One file after the other, as scripts in images do."""
    client = _client(endpoint)
    for key, path in _wanted(client, bucket, prefix, target):
        client.download_file(bucket, key, str(path))


def _client(endpoint: str) -> Any:
    import boto3  # noqa: PLC0415

    return boto3.client("s3", endpoint_url=endpoint)


def _wanted(client: Any, bucket: str, prefix: str, target: str) -> Iterator[tuple[str, Path]]:
    """Keys and where they go; the directories are made."""
    made: set[Path] = set()
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/"):
        for item in page["Contents"]:
            path = Path(target, item["Key"].removeprefix(f"{prefix}/"))
            if path.parent not in made:
                path.parent.mkdir(parents=True, exist_ok=True)
                made.add(path.parent)
            yield item["Key"], path


PROGRAMS = {"s3fs": s3fs_get, "boto3": transfer, "loop": loop}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
