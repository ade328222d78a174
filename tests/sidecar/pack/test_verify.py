from __future__ import annotations

import asyncio

import msgspec
import pytest

from podferry.contract.errors import NotFound
from podferry.sidecar.pack.reader import open_pack
from podferry.sidecar.pack.verify import verify_pack
from podferry.storage.listing.dataset import list_dataset
from podferry.storage.memory.faults import Fault
from tests.support.pack_site import SETTINGS
from tests.support.patience import PATIENCE


async def test_an_intact_pack_has_no_problem_and_is_read_completely(site):
    result = await site.pack()
    site.target.calls.clear()
    assert await site.problems() == []
    assert {shard.name for shard in result.index.shards} <= set(site.reads())


async def test_damage_outside_of_all_files_is_a_problem(site):
    result = await site.pack()
    shard = result.index.shards[0]
    data = bytearray(site.target.objects[f"d/{shard.name}"])
    data[-1] ^= 1
    site.target.objects[f"d/{shard.name}"] = bytes(data)
    [problem] = await site.problems()
    assert (shard.name in problem.what, problem.measured) == (True, "no file differs")


async def test_damaged_shards_are_reported_by_name_whichever_is_read_first(site):
    first, second, third = (await site.pack()).index.shards[:3]
    for shard in (first, second):
        site.target.objects[f"d/{shard.name}"] = bytes(shard.bytes)
    later = asyncio.Event()
    site.target.faults.append(Fault("read", first.name, wait=later))
    store = site.opened(site.target, "target")
    pack = await open_pack(store, await list_dataset(store))
    settings = msgspec.structs.replace(SETTINGS, buffer_bytes=1 << 20)  # the first may hold much of it
    verifying = asyncio.create_task(verify_pack(pack, store, settings))
    async with asyncio.timeout(PATIENCE):
        while third.name not in site.reads():  # noqa: ASYNC110 - the store has no event for it
            await asyncio.sleep(0)
    later.set()
    problems = await verifying
    assert [problem.what.split()[2] for problem in problems] == [first.name, second.name]


async def test_a_shard_that_disappears_meanwhile_is_not_found(site):
    await site.pack()
    site.target.faults.append(Fault("read", "shard-00000.tar", error=NotFound.of("shard-00000.tar")))
    with pytest.raises(NotFound, match="shard-00000"):
        await site.problems()
