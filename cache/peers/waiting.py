"""Waits for an event, but not for ever."""

from __future__ import annotations

import asyncio


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, or for this long."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
