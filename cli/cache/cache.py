"""`podferry cache …`: fetch a dataset once, and serve it to the pods near it."""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path
from typing import Any

import click
import msgspec

from podferry.cache.holder.holder import run_holder
from podferry.cache.holder.holder_stage import HolderStage
from podferry.cli.options.log_options import log_options
from podferry.cli.options.store_options import access_options
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.spec import Unpack
from podferry.sidecar.config.directories import ensure_dir, sibling_dir
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.dataset_job import DatasetJob, DatasetPlacement
from podferry.sidecar.launch.local_spec import local_spec
from podferry.sidecar.runtime.log_setup import configure_logs

DEFAULT_PORT = 8091
LOOPBACK = "127.0.0.1"


@click.group()
def command() -> None:
    """Fetch a dataset once, and serve it to the pods near it."""


@command.command("serve")
@click.argument("uri")
@click.argument("directory")
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, help="Port to listen on.")
@access_options
@log_options
def serve(uri: str, directory: str, port: int, log_level: str, log_format: str | None, **access: Any) -> None:
    """Fetch the dataset URI into DIRECTORY, keep it there, and serve it read-only on this machine.

    Readers name it: `podferry dataset get --cache http://127.0.0.1:PORT URI DIRECTORY`. Files that an
    earlier start has left in DIRECTORY are compared with its record, and fetched again if they differ.
    """
    configure_logs(log_level, log_format)
    stage = _stage(uri, directory, access.pop("secret_dir"), access)
    listener = _listen(port)
    asyncio.run(_serve(stage, listener))


def _stage(uri: str, directory: str, secret_dir: Path | None, access: dict[str, Any]) -> HolderStage:
    settings = {"dataset": uri, "dataset_path": directory, **access}
    [spec] = local_spec(settings, [], Path()).datasets
    spec = msgspec.structs.replace(spec, unpack=Unpack.NEVER)  # readers unpack
    root = Path(spec.path)
    InvalidSpec.raise_any(filter(None, [ensure_dir(root)]))
    placement = DatasetPlacement(root, sibling_dir(root), secret_dir)
    return HolderStage(
        str(spec.parsed.uri),
        lambda: DatasetJob(spec, placement, PrefetchSettings()),
        root,
        placement.ownership,
    )


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        remedy = "Choose another one with --port"
        raise InvalidSpec(Problem(f"the port {port} cannot be used", str(error), remedy)) from error


async def _serve(stage: HolderStage, listener: socket.socket) -> None:
    running = asyncio.create_task(run_holder([stage], listener, socket.gethostname()))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    await asyncio.gather(running, return_exceptions=True)
    if not running.cancelled():
        running.result()
