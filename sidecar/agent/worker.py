"""The worker's process: an agent from its first breath to its drain."""

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


def _when_told(end: asyncio.Event, parent: int) -> None:
    """Set `end` at SIGTERM, SIGINT, or when the pipe `parent` closes: the supervisor is gone."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end.set)

    def closed() -> None:
        if not os.read(parent, 1):
            loop.remove_reader(parent)
            end.set()

    loop.add_reader(parent, closed)


async def run_agent(
    config: AgentConfig, listener: socket.socket, parent: int = 0, *, ending: bool = False
) -> None:
    """Live until told to end, then drain. An unexpected error ends the process: it is started again.

    Args:
        config: What to do.
        listener: Where to answer.
        parent: A pipe whose end says that the supervisor has gone.
        ending: The pod ends already: drain at once.
    """
    end = asyncio.Event()
    if ending:
        end.set()
    _when_told(end, parent)
    agent = Agent(config)
    runner = await serve(agent.api, listener)
    work = asyncio.create_task(agent.work())
    tasks: list[asyncio.Task[Any]] = [work]
    steps: tuple[Callable[[], Coroutine[Any, Any, Any]], ...] = (end.wait, agent.drain)
    try:
        for step in steps:
            tasks.append(asyncio.create_task(step()))
            await asyncio.wait({work, tasks[-1]}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
            await tasks[-1]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await agent.close()
        await runner.cleanup()
    agent.clean()
