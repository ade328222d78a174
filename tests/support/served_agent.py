"""Reads the metrics of an agent."""

from __future__ import annotations

import asyncio
from urllib.request import urlopen

from podferry.contract.http_api import METRICS_PATH
from podferry.sidecar.control.http_client import AgentClient


async def metrics_of(client: AgentClient) -> list[str]:
    with await asyncio.to_thread(urlopen, f"{client.url}{METRICS_PATH}") as answer:
        lines: list[str] = answer.read().decode().splitlines()
    return lines
