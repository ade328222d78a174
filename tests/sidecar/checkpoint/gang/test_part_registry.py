from __future__ import annotations

import msgspec
import pytest

from podferry.contract.errors import Changed
from tests.support.gang_site import commits, file, joined_gang, publish


async def test_a_part_that_an_older_agent_has_replaced_is_written_again(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a")
    path = "run/.podferry/parts/step-100/0.json"
    mine = site.content.objects[path]
    other = msgspec.json.decode(mine) | {"writer": "older", "generation": "0" * 32}
    site.content.objects[path] = msgspec.json.encode(other)
    await one.commit_complete()
    assert site.content.objects[path] == mine
    await publish(site, two, 100, "b")
    assert len((await two.commit_complete())[0]) == 1


async def test_a_part_refers_only_to_listed_data(site):
    one, two = await joined_gang(site)
    for gang in (one, two):
        await publish(site, gang, 100, "a")
    await one.commit_complete()
    kept = commits(site)[0].files[1]
    await publish(site, one, 110, "b", kept)
    with pytest.raises(Changed, match=r"gone-1/w"):
        await publish(site, two, 110, "b", file("w", "w", "gone-1"))
    assert (await one.commit_complete())[0] == []
    await publish(site, two, 110, "b", file("w", "w", "own-1"))


async def test_a_damaged_part_is_ignored(site):
    one, two = await joined_gang(site)
    await publish(site, one, 100, "a")
    await publish(site, two, 100, "b")
    site.content.objects["run/.podferry/parts/step-100/1.json"] = b"{"
    site.content.objects["run/.podferry/parts/step-100/x.json"] = b"{"
    assert (await one.commit_complete())[1][0].what == "step-100 waits for rank 1 of 2"
    assert len((await two.commit_complete())[0]) == 0
    assert len((await one.commit_complete())[0]) == 1
