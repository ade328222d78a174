from __future__ import annotations

import asyncio

import pytest

from podferry.storage.names_in_flight import NamesInFlight


async def test_names_that_differ_only_in_case_are_written_one_after_the_other():
    names, running, most = NamesInFlight(), set[str](), []

    async def write(name: str) -> None:
        async with names.held(name):
            running.add(name)
            most.append(set(running))
            await asyncio.sleep(0)
            running.discard(name)

    await asyncio.gather(*(write(name) for name in ("a/B", "a/b", "a/B", "a/b", "Ä", "ä", "other")))
    assert all(len({name.lower() for name in one}) == len(one) for one in most)
    assert len(most) == 7
    assert not names._held


async def test_a_name_is_free_after_a_failed_write():
    names = NamesInFlight()
    with pytest.raises(ValueError, match="broken"):
        async with names.held("a"):
            raise ValueError("broken")
    async with asyncio.timeout(1), names.held("A"):
        pass


async def test_a_cancelled_wait_holds_nothing():
    names = NamesInFlight()
    async with names.held("a"):
        waiting = asyncio.create_task(names.held("A").__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert not names._held
