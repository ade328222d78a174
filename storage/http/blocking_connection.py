"""A connection that sends GET requests and blocks until they are answered."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from io import BufferedReader
from typing import cast
from urllib.parse import SplitResult

from podferry.storage.http.blocking_response import BlockingResponse
from podferry.storage.network.proxies import DEFAULT_PORTS
from podferry.storage.network.tls import tls_context
from podferry.storage.request_builder import is_printable_ascii
from podferry.storage.timeouts_and_limits import Limits


class BlockingConnection:
    """One connection. Calls: 1. `connect`, 2. `get` as often as responses are reusable, 3. `close`."""

    def __init__(self, url: SplitResult, ca: str, limits: Limits) -> None:
        """Prepare a connection to the server of a URL.

        Args:
            url: Its scheme, host and port count.
            ca: Certificates (PEM) that are trusted in addition to the system's.
            limits: Seconds to connect, and between bytes.
        """
        host, port = url.hostname or "", url.port
        self._host, self._port = host, port or DEFAULT_PORTS[url.scheme]
        shown = f"[{host}]" if ":" in host else host
        self._authority = shown if self._port == DEFAULT_PORTS[url.scheme] else f"{shown}:{self._port}"
        self._tls = tls_context(ca) if url.scheme == "https" else None
        self._limits = limits
        self._socket: socket.socket | None = None
        self._reader: BufferedReader | None = None

    def connect(self) -> None:
        """Open it. Raises `OSError`."""
        # Bytes: text would be encoded with "idna", whose tables take 2 ms to import.
        host = cast("str", self._host.encode()) if self._host.isascii() else self._host
        made = socket.create_connection((host, self._port), self._limits.connect_seconds)
        self._socket = made
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            self._socket = made = self._tls.wrap_socket(made, server_hostname=self._host)
        made.settimeout(self._limits.stall_seconds)
        self._reader = made.makefile("rb")

    def get(self, target: str, headers: Mapping[str, str]) -> BlockingResponse:
        """The response to a request, its body unread.

        Raises:
            OSError: There is none; see also `BlockingResponse`.
        """
        fields = {"Host": self._authority, "User-Agent": "podferry", **headers}
        if not all(map(is_printable_ascii, (target, *fields.values()))) or " " in target:
            raise OSError("the request has characters that cannot be sent")
        lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        if self._socket is None or self._reader is None:
            raise ConnectionError("the connection has been closed")
        self._socket.sendall("\r\n".join(lines).encode())
        return BlockingResponse(self._reader)

    def abort(self) -> None:
        """Close it while another thread may be waiting for bytes."""
        with suppress(OSError, AttributeError):
            self._socket.shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]
        self.close()

    def close(self) -> None:
        """Close it."""
        reader, self._reader = self._reader, None
        made, self._socket = self._socket, None
        for each in (reader, made):
            if each is not None:
                each.close()
