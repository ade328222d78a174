"""`podferry agent`, the parent process: binds the address and keeps the worker alive.

It parses with argparse, and loads neither click nor msgspec nor pathlib: that would double its start, which
every pod waits for.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys

from podferry.sidecar.agent.supervisor import supervise
from podferry.sidecar.runtime.log_options import default_format
from podferry.sidecar.runtime.messages import configure_messages

DEFAULT_PORT = 8471


def main(arguments: list[str]) -> int:
    """Parse the supervisor's options; the others go to the worker, which validates them with click."""
    parser = argparse.ArgumentParser("podferry agent", add_help=False, allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=_port, default=DEFAULT_PORT)
    parser.add_argument("--listen-fd", type=int)
    parser.add_argument("--run-dir")
    parser.add_argument("--log-format")
    options, worker_arguments = parser.parse_known_args(arguments)
    _configure_messages(options.log_format, in_pod="--in-pod" in worker_arguments)
    if options.log_format is not None:
        worker_arguments += ["--log-format", options.log_format]
    run = None
    if options.run_dir:
        from pathlib import Path  # noqa: PLC0415

        from podferry.sidecar.config.run_directory import RunDirectory  # noqa: PLC0415 - only in a local run

        run = RunDirectory(Path(options.run_dir))
        worker_arguments += ["--run-dir", options.run_dir]
    with _listener(options.host, options.port, options.listen_fd) as listener:
        return supervise(worker_arguments, listener, run)


def _configure_messages(log_format: str | None, *, in_pod: bool) -> None:
    """Its own messages are in the format of the worker's log."""
    default = "json" if in_pod else default_format(os.environ, sys.stderr)
    configure_messages(log_format or default, quiet=False)


def _port(text: str) -> int:
    if text.isdecimal() and int(text) < 1 << 16:
        return int(text)
    raise argparse.ArgumentTypeError(f"not a port from 0 to 65535: {text!r}")


def _listener(host: str, port: int, descriptor: int | None) -> socket.socket:
    """The inherited socket, or a new one on loopback, which the containers of a pod share."""
    if descriptor is not None:
        return socket.socket(fileno=descriptor)
    try:
        return socket.create_server((host, port))
    except OSError as error:
        from podferry.contract.errors import Refused  # noqa: PLC0415 - rarely needed

        remedy = "Choose another one with --port, or stop what listens there"
        raise Refused.of(
            f"the agent cannot listen on port {port}", os.strerror(error.errno or 0), remedy
        ) from error
