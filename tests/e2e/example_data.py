"""Small data for the example pipelines: some of what `make demo PIPELINE=NAME` has."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tests.e2e.bucket import Bucket, free_port
from tests.e2e.site import Site
from tests.support.undistributed import load

load("demo")

from demo.examples import read_write_split, scripts, tabular  # noqa: E402 - loaded above
from demo.images import pictures  # noqa: E402

DATA = "examples"
"""Prefix of all data in the bucket."""
DIGITS = 200
PICTURES = 64
TEXTS = ("argparse", "ast")
"""Modules of Python's own library."""


def put_data(bucket: Bucket) -> None:
    for one in pictures(DIGITS):
        bucket.put(f"{DATA}/digits/{one.name}", one.data)
    for name, data in islice(read_write_split.pictures(), PICTURES):
        bucket.put(f"{DATA}/pictures/{name}", data)
    for name, data in tabular.shards():
        if name.startswith(("train/00", "test/00")):
            bucket.put(f"{DATA}/rows/{name}", data)
    for part in range(2):
        numbers = "\n".join(map(str, range(part, 100, 2)))
        bucket.put(f"{DATA}/numbers/{part}.txt", numbers.encode())
    bucket.put(f"{DATA}/code/train.py", scripts.FIRST.encode())


@contextlib.contextmanager
def web_server(site: Site, folder: Path) -> Iterator[str]:
    """A directory of texts that pods reach; its URL."""
    for name in TEXTS:
        (folder / f"{name}.txt").write_bytes(Path(contextlib.__file__).with_name(f"{name}.py").read_bytes())
    host, port = site.cluster.host_address, free_port(site.cluster)
    command = [sys.executable, "-m", "http.server", str(port), "--bind", host, "--directory", str(folder)]
    with site.cluster.run_in_network(command, port=port):
        yield f"http://{host}:{port}/"
