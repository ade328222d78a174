"""A port for a server that another process starts."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port of 127.0.0.1 that the kernel gives to nobody else, while a server may be started on it.

    Nobody listens on it so far. Linux lets two sockets have one address if both set SO_REUSEADDR, as servers
    do, and at most one of them listens.
    """
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]
