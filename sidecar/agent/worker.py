"""Runs one agent from start to drain, in a process of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any

import structlog

from podferry.sidecar.agent.agent import Agent
from podferry.sidecar.agent.end_request import EndRequest
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.run_directory import RunDirectory
from podferry.sidecar.control.http_server import serve
from podferry.sidecar.runtime.file_lock import acquire

log = structlog.get_logger(__name__)


def _take_over(run: RunDirectory) -> bool:
    """Wait until an earlier worker of the run has ended; whether anything is left to do."""
    try:
        acquire(run.agent_lock)
    except FileNotFoundError:
        return False
    return run.path.exists()


async def run_agent(
    config: AgentConfig, listener: socket.socket, parent: int = 0, *, ending: bool = False
) -> None:
    """Run until the end is signalled, or `ending` already, then drain.

    An unexpected error is raised, and the supervisor restarts the worker. `listener` is the API's socket;
    `parent` is a pipe that closes when the supervisor is gone.
    """
    run = config.directories.run
    end = EndRequest(run, parent)
    if ending:
        end.set()
    if run is not None and not _take_over(run):
        return
    agent = Agent(config)
    endpoint = await serve(agent.api, listener)
    running = asyncio.create_task(agent.run())
    tasks: list[asyncio.Task[Any]] = [running]

    async def finish(step: Coroutine[Any, Any, bool | None]) -> bool | None:
        tasks.append(task := asyncio.create_task(step))
        await asyncio.wait({running, task}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        return await task

    try:
        if not await finish(end.wait()):
            log.warning("the supervisor was killed: another one continues")
            return
        await finish(agent.drain())
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await agent.close()
        await endpoint.cleanup()
    agent.clean_up()
