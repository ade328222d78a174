"""A webhook as a process of its own, and clients that behave as an API server does."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podferry.webhook.cluster.certificates import renew_if_needed
from tests.support.patience import PATIENCE
from tests.support.reserved_port import reserved_port

POLICY = "apiVersion: podferry.io/v1alpha1\nkind: InjectionPolicy\nimage: podferry:1\n"


@dataclass(frozen=True, slots=True)
class WebhookProcess:
    """A webhook that responds.

    Attributes:
        port: On 127.0.0.1.
        trust: Trusts its certificate.
        process: It; not started through a shell.
        folder: With `policy.yaml`, `tls.crt` and `tls.key`.
        ready_after: Seconds from its start until it was ready.
    """

    port: int
    trust: ssl.SSLContext
    process: subprocess.Popen[bytes]
    folder: Path
    ready_after: float

    async def open(self) -> ApiServerConnection:
        """A new connection."""
        return await connection_to(self.port, self.trust)


class ApiServerConnection:
    """A connection that is kept open between requests, as the API server's are."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.closes = False

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body; raises `EOFError` or `OSError` if the connection ends before the response."""
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return await self.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def get(self, path: str) -> tuple[int, bytes]:
        """See `post`."""
        return await self.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """Send raw bytes and read one response; `closes` is then whether the server will close."""
        self.writer.write(request)
        return await self.response()

    async def response(self) -> tuple[int, bytes]:
        """Read one response."""
        status, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines if line)
        self.closes = headers.get("connection") == "close"
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return int(status.split()[1]), body

    async def close(self) -> None:
        """Close it."""
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


async def connection_to(port: int, trust: ssl.SSLContext) -> ApiServerConnection:
    """A new connection to a webhook on 127.0.0.1."""
    stream = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname="localhost")
    return ApiServerConnection(*stream)


def review(pod: Any, uid: str = "u-1", **request: Any) -> bytes:
    """An AdmissionReview of a pod, as an API server sends it."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    asked = {"uid": uid, "kind": kind, "operation": "CREATE", "namespace": "team", "object": pod, **request}
    document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    return json.dumps(document).encode()


@contextmanager
def webhook_process(folder: Path, *options: str, program: Sequence[str] = ()) -> Iterator[WebhookProcess]:
    """A webhook with a certificate and a policy in `folder`; it is ended at the end, if it still runs.

    `program`: the words after Python's own, if it is another server with the webhook's options.
    """
    material = renew_if_needed(None, ["localhost"], datetime.now(UTC))
    (folder / "tls.crt").write_bytes(material.certificate)
    (folder / "tls.key").write_bytes(material.key)
    (folder / "policy.yaml").write_text(POLICY)
    trust = ssl.create_default_context(cadata=material.bundle.decode())
    with reserved_port() as port, (folder / "log").open("wb") as log:
        words = [
            *(sys.executable, *(program or ("-m", "podferry")), "webhook"),
            *(f"--port={port}", f"--policy={folder / 'policy.yaml'}"),
            *(f"--certificate={folder / 'tls.crt'}", f"--key={folder / 'tls.key'}", *options),
        ]
        started = time.monotonic()
        process = subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, "NO_COLOR": "1"})
        try:
            while not _ready(port, trust):
                if process.poll() is not None or time.monotonic() - started > PATIENCE:
                    raise RuntimeError(f"the webhook does not start: {(folder / 'log').read_text()}")
                time.sleep(0.01)
            yield WebhookProcess(port, trust, process, folder, time.monotonic() - started)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()


def _ready(port: int, trust: ssl.SSLContext) -> bool:
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as plain,
            trust.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return b" 200 " in connection.recv(64)
    except OSError:
        return False
