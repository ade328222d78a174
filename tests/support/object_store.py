"""An object store for fault runs: moto's S3 server in a process of its own, on loopback alone.

It ends when its standard input does, which is when its user does, however that ends.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from demo.store import store_process
from tests.support.patience import PATIENCE

BUCKET = "faults"
ACCESS_KEY = SECRET_KEY = "faults"
REGION = "us-east-1"
SIGNED = f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20200101/{REGION}/s3/aws4_request"
"""What moto needs to see to know that a request is S3's; it checks no signature."""


@contextmanager
def object_store() -> Iterator[str]:
    """A running store with an empty bucket; its URL.

    Raises:
        DemoError: It does not start.
        RuntimeError: It makes no bucket.
    """
    with store_process("tests.support.object_store") as url:
        _create_bucket(url)
        yield url


def _create_bucket(url: str) -> None:
    """Make the bucket by hand, since podferry writes objects alone."""
    assert urlsplit(url).hostname == "127.0.0.1"
    request = urllib.request.Request(  # noqa: S310 - a URL of our own server
        f"{url}/{BUCKET}", method="PUT", headers={"Authorization": SIGNED}
    )
    try:
        urllib.request.urlopen(request, timeout=PATIENCE).close()  # noqa: S310 - a URL of our own server
    except urllib.error.URLError as error:
        raise RuntimeError(f"the embedded object store makes no bucket: {error}") from error


def main() -> None:
    """Serve until standard input ends."""
    import logging  # noqa: PLC0415 - for the server's process alone

    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - for the server's process alone

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    sys.stdout.write(f"http://127.0.0.1:{port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
