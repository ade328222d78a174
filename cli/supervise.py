"""`podferry agent`, the parent half: binds the address and keeps the worker alive."""

from __future__ import annotations

import argparse
import socket

from podferry.sidecar.agent.supervisor import supervise

DEFAULT_PORT = 8471


def main(arguments: list[str]) -> int:
    """Take out what is the supervisor's; the rest is the worker's."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    parser.add_argument("--listen-fd", type=int)
    parser.add_argument("--until-stdin-closes", action="store_true")
    own, workers = parser.parse_known_args(arguments)
    with _listener(own.port, own.listen_fd) as listener:
        return supervise(workers, listener, until_stdin_closes=own.until_stdin_closes)


def _listener(port: int, descriptor: int | None) -> socket.socket:
    """The socket that was handed over, or a new one on loopback: containers of a pod share that."""
    return (
        socket.create_server(("127.0.0.1", port)) if descriptor is None else socket.socket(fileno=descriptor)
    )
