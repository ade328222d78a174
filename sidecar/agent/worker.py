"""Runs one agent from start to drain, in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from podferry.sidecar.agent.agent import Agent
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.control.http_server import serve


def _set_at_end(end: asyncio.Event, parent: int) -> None:
    """Set `end` at SIGTERM, SIGINT, or when the pipe `parent` closes: the supervisor is gone."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end.set)

    def on_readable() -> None:
        if not os.read(parent, 1):
            loop.remove_reader(parent)
            end.set()

    loop.add_reader(parent, on_readable)


async def run_agent(
    config: AgentConfig, listener: socket.socket, parent: int = 0, *, ending: bool = False
) -> None:
    """Run until the end is signalled, or `ending` already, then drain.

    An unexpected error is raised, and the supervisor restarts the worker. `listener` is the API's socket;
    `parent` is a pipe that closes when the supervisor is gone.
    """
    end = asyncio.Event()
    if ending:
        end.set()
    _set_at_end(end, parent)
    agent = Agent(config)
    runner = await serve(agent.api, listener)
    running = asyncio.create_task(agent.run())
    tasks: list[asyncio.Task[Any]] = [running]
    steps: tuple[Callable[[], Coroutine[Any, Any, Any]], ...] = (end.wait, agent.drain)
    try:
        for step in steps:
            tasks.append(asyncio.create_task(step()))
            await asyncio.wait({running, tasks[-1]}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            await tasks[-1]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await agent.close()
        await runner.cleanup()
    agent.clean_up()
