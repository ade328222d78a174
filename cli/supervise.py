"""`podferry agent`, the parent process: binds the address and keeps the worker alive.

It parses with argparse: importing click would double its start, which every pod waits for.
"""

from __future__ import annotations

import argparse
import socket

from podferry.sidecar.agent.supervisor import supervise

DEFAULT_PORT = 8471


def main(arguments: list[str]) -> int:
    """Parse the supervisor's options; the others go to the worker, which validates them with click."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    parser.add_argument("--listen-fd", type=int)
    parser.add_argument("--until-stdin-closes", action="store_true")
    options, worker_arguments = parser.parse_known_args(arguments)
    with _listener(options.port, options.listen_fd) as listener:
        return supervise(worker_arguments, listener, until_stdin_closes=options.until_stdin_closes)


def _listener(port: int, descriptor: int | None) -> socket.socket:
    """The inherited socket, or a new one on loopback, which the containers of a pod share."""
    if descriptor is not None:
        return socket.socket(fileno=descriptor)
    return socket.create_server(("127.0.0.1", port))
