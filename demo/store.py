"""The embedded object store: S3's requests for objects, answered from files, in a process of its own.

It takes what podferry and boto3 send for objects of up to 64 MiB, conditional writes included, and checks no
signature. The store's contract suite runs against it. It ends when its standard input does, which is when the
demo does, however that ends.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.failure import DemoError

BUCKET = "demo"
KEY = "demo"
"""Of every user; nothing checks it."""


def environment(endpoint: str) -> dict[str, str]:
    """What reaches the store, by the usual names; nothing asks a metadata service or a user's files."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@contextmanager
def object_store() -> Iterator[str]:
    """A running store with an empty bucket; its URL. Raises as `store_process`."""
    with store_process("demo.store") as url:
        yield url


@contextmanager
def store_process(module: str) -> Iterator[str]:
    """A module run as a server that prints its URL, and ends when its standard input does; the URL.

    Raises:
        DemoError: It does not start.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a terminal's Ctrl-C reaches the demo alone
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - they are pipes
    with process:
        url = process.stdout.readline().strip()
        if not url:
            raise DemoError(f"the embedded object store ended at its start with {process.wait()}")
        try:
            yield url
        finally:
            process.stdin.close()


def main() -> None:
    """Serve until standard input ends."""
    import uvloop  # noqa: PLC0415 - for the server's process alone

    from demo.s3 import serve  # noqa: PLC0415 - for the server's process alone

    with tempfile.TemporaryDirectory(prefix="podferry-demo-") as folder:
        uvloop.run(serve(BUCKET, Path(folder), _announce))


def _announce(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
