from __future__ import annotations

import pytest

from podferry.contract.errors import NotFound
from podferry.storage.memory.faults import Fault


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


async def test_every_damaged_shard_is_reported_in_order(site):
    result = await site.pack()
    for shard in result.index.shards[2:0:-1]:
        site.target.objects[f"d/{shard.name}"] = bytes(shard.bytes)
    problems = await site.problems()
    assert [problem.what.split()[2] for problem in problems] == [s.name for s in result.index.shards[1:3]]
    assert all(problem.remedy for problem in problems)


async def test_a_shard_that_disappears_meanwhile_is_not_found(site):
    await site.pack()
    site.target.faults.append(Fault("read", "shard-00000.tar", error=NotFound.of("shard-00000.tar")))
    with pytest.raises(NotFound, match="shard-00000"):
        await site.problems()
