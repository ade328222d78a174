"""The object store of a fault run: a real S3 server, or an imitation where it cannot be built."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from obstore.store import S3Store

from tests.support.object_store import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, object_store

START = 30.0
"""Seconds that the server may take to listen."""


@dataclass(frozen=True, slots=True)
class Served:
    """A store that runs.

    Attributes:
        name: What it is.
        port: Where, on loopback.
        bucket: An empty one.
        checks: Whether it compares a body with the digest that was signed with it, as S3 does.
    """

    name: str
    port: int
    bucket: str
    checks: bool

    @property
    def environment(self) -> dict[str, str]:
        """What reaches it, but for its URL."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def open(self) -> S3Store:
        """A client of its own for the oracle, past all faults."""
        return S3Store(
            self.bucket,
            endpoint=f"http://127.0.0.1:{self.port}",
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            region=REGION,
            client_options={"allow_http": True},
        )


@contextmanager
def served(kind: str) -> Iterator[Served]:
    """A running store.

    Args:
        kind: `versitygw`, `moto`, or `auto`: the first where Go or what it once built is there.

    Raises:
        RuntimeError, DemoError: It cannot be built or does not start.
    """
    program: Path | None = None
    if kind != "moto":
        try:
            program = _installed()
        except RuntimeError:
            if kind == "versitygw":
                raise
    if program is None:
        with object_store() as url:
            yield Served("moto (imitated)", int(url.rpartition(":")[2]), BUCKET, checks=False)
        return
    with _versitygw(program) as port:
        yield Served("versitygw (real)", port, BUCKET, checks=True)


def _installed() -> Path:
    """The program of versitygw, built where it is not there yet: as for the tests against real servers.

    Raises:
        RuntimeError: There is no Go, or it cannot build it.
    """
    return Path(import_module("tests.support.server_binaries").installed("versitygw"))


@contextmanager
def _versitygw(program: Path) -> Iterator[int]:
    with tempfile.TemporaryDirectory(prefix="podferry-faults-") as folder:
        (Path(folder) / "data" / BUCKET).mkdir(parents=True)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
        command = [str(program), "--quiet", "--port", f"127.0.0.1:{port}", "posix", f"{folder}/data"]
        process = subprocess.Popen(
            command,
            env={**os.environ, **keys},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            _wait(process, port)
            yield port
        finally:
            process.terminate()
            process.wait(START)


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"versitygw ended at its start with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"versitygw does not listen after {START:g} s")
