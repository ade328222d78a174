"""moto's S3 server in this process, which checks no signature, with a bucket and a plain client."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.store_calls import KEYS


@contextmanager
def moto_server(bucket: str) -> Iterator[tuple[str, Any]]:
    """A running server that has the bucket: its endpoint, and a boto3 client of it.

    Both packages are imported here, since most tests do without them.
    """
    server = importlib.import_module("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        client = importlib.import_module("boto3").client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=bucket)
        yield endpoint, client
        client.close()
    finally:
        server.stop()
