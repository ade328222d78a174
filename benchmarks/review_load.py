"""Sends reviews to a webhook: as many as it takes, or at a fixed rate, over kept TLS connections."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from tests.support.webhook_process import ApiServerConnection, WebhookProcess

CONNECTIONS = 8
AWAKE_SECONDS = 0.002
"""Before a review is due; a timer may be late by half of that."""
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: int) -> float:
    """CPU time of a process so far. Source: proc(5), stat."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def saturate(webhook: WebhookProcess, bodies: Sequence[bytes], count: int) -> tuple[float, float]:
    """Send `count` of these reviews, in turns, on each connection one after another.

    Returns how many it took per second of CPU time, and per second.
    """
    connections = [await webhook.open() for _ in range(CONNECTIONS)]
    for one in connections:
        await _answered(one, bodies[0])
    cpu, started = cpu_seconds(webhook.process.pid), time.perf_counter()
    left = islice(cycle(bodies), count)

    async def work(connection: ApiServerConnection) -> None:
        for body in left:
            await _answered(connection, body)

    await asyncio.gather(*map(work, connections))
    elapsed, used = time.perf_counter() - started, cpu_seconds(webhook.process.pid) - cpu
    for one in connections:
        await one.close()
    return count / used, count / elapsed


async def latencies(
    webhook: WebhookProcess, bodies: Sequence[bytes], rate: float, seconds: float
) -> list[float]:
    """Seconds from the time when each review is due to its response, sorted; `rate` a second are due.

    The client's own delays are no part of them: it does not rely on timers, which are late by up to a
    millisecond, and its garbage is collected afterwards.
    """
    free: asyncio.Queue[ApiServerConnection] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        connection = await webhook.open()
        await _answered(connection, bodies[0])
        free.put_nowait(connection)
    found: list[float] = []

    async def one(body: bytes, due: float) -> None:
        connection = await free.get()
        await _answered(connection, body)
        found.append(time.perf_counter() - due)
        free.put_nowait(connection)

    with _without_collections():
        started, running = time.perf_counter(), []
        for number in range(int(rate * seconds)):
            due = started + number / rate
            await _until(due)
            running.append(asyncio.create_task(one(bodies[number % len(bodies)], due)))
        await asyncio.gather(*running)
    while not free.empty():
        await free.get_nowait().close()
    return sorted(found)


async def _until(due: float) -> None:
    """Sleep for most of the time, then look again and again, while responses are read."""
    await asyncio.sleep(max(0.0, due - time.perf_counter() - AWAKE_SECONDS))
    while time.perf_counter() < due:  # noqa: ASYNC110 - no event says when
        await asyncio.sleep(0)


@contextmanager
def _without_collections() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def percentile(values: Sequence[float], share: float) -> float:
    """Of sorted values."""
    return values[min(len(values) - 1, int(len(values) * share))]


async def _answered(connection: ApiServerConnection, body: bytes) -> None:
    status, _ = await connection.post("/mutate", body)
    if status != 200:
        raise RuntimeError(f"a review was answered with {status}")
