"""Runs a holder: fills its stages, serves them, until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from podferry.cache.holder.connections import Connections, end_stalled, most_connections
from podferry.cache.holder.holder_stage import HolderStage
from podferry.cache.holder.readers import Readers
from podferry.cache.holder.refresher import keep_current
from podferry.cache.holder.server import HolderServer
from podferry.cache.holder.small_files import SmallFiles
from podferry.contract.errors import FerryError
from podferry.sidecar.fetch.workers.processes import release_idle
from podferry.sidecar.runtime.concurrency import gather_all, merge_errors
from podferry.webhook.admission.open_files import raise_open_files

log = structlog.get_logger(__name__)
REQUEST_LOG = logging.getLogger(__name__)
"""aiohttp's: anybody who connects could fill the log with requests that are none."""
REQUEST_LOG.addFilter(
    lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))
)


async def run_holder(
    stages: Sequence[HolderStage],
    listener: socket.socket,
    node: str,
    readers: Readers | None = None,
    refresh_seconds: float | None = None,
) -> None:
    """Serve and fill until cancelled. A dataset that cannot be fetched does not stop the others.

    Args:
        stages: The datasets, filled one after the other: each may use all bytes in flight.
        listener: Where to serve.
        node: Where it runs, for its status.
        readers: Who may read; None for everybody who can connect.
        refresh_seconds: After how many the sources are listed again; None for when somebody asks for it.

    Raises:
        FerryError: None of them can be fetched.
    """
    try:
        async with _serving(HolderServer(stages, node, readers), listener):
            host, port = listener.getsockname()[:2]
            log.info("serving", address=f"{host}:{port}", datasets=len(stages))
            await _fill(stages)
            await release_idle()
            await gather_all(keep_current(stage, refresh_seconds) for stage in stages)
    finally:
        for stage in stages:
            await stage.close()


@asynccontextmanager
async def _serving(server: HolderServer, listener: socket.socket) -> AsyncIterator[None]:
    application, connections = server.application(), Connections(most_connections(raise_open_files()))
    application.middlewares.insert(0, connections.watch)
    runner = web.AppRunner(application, access_log=None, logger=REQUEST_LOG)
    await runner.setup()
    end_stalled(listener)
    closing = asyncio.create_task(connections.close_late())
    listening: asyncio.Server | None = None
    try:
        handler = runner.server
        assert handler is not None  # noqa: S101 - `setup` makes it
        listening = await asyncio.get_running_loop().create_server(
            lambda: SmallFiles(server.small_file, handler, connections), sock=listener
        )
        yield
    finally:
        if listening is not None:
            listening.close()
        closing.cancel()
        connections.close()
        await runner.cleanup()


async def _fill(stages: Sequence[HolderStage]) -> None:
    """Fill them one after the other; raises what is wrong if none can be filled."""
    failures: list[FerryError] = []
    for stage in stages:
        try:
            await stage.fill()
        except FerryError as error:
            failures.append(error)
            log.error("a dataset cannot be fetched", uri=stage.uri, reason=str(error))
    merged = merge_errors(failures)
    if merged is not None and len(failures) == len(stages):
        raise merged
