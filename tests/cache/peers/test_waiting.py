import asyncio

from podferry.cache.peers.waiting import wait_for


async def test_it_ends_with_the_event_or_after_a_while():
    event = asyncio.Event()
    await wait_for(event, 0.01)
    assert not event.is_set()
    event.set()
    await wait_for(event, 600)
