"""Several processes that share a sync move each file once, whoever is first, killed, or started again."""

from __future__ import annotations

import asyncio

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import Shard
from podferry.storage.memory.faults import Fault
from tests.support.memory_bucket import Killed
from tests.support.sync_site import DEATH, SyncSite

COUNT = 3
SHARES = [Shard(rank, COUNT) for rank in range(COUNT)]
NAMES = [f"d{n % 7}/{n}" for n in range(300)]


@pytest.fixture
def filled(site: SyncSite) -> SyncSite:
    site.put(**{name: name for name in NAMES})
    return site


async def sync_all(site, shares=SHARES, **options):
    """What the processes do at the same time."""
    return await asyncio.gather(*(site.sync(share=share, **options) for share in shares))


async def test_together_they_move_each_file_once(filled):
    found = await sync_all(filled)
    assert sorted(name for one in found for name in one.moved) == sorted(NAMES)
    assert all(len(one.moved) > len(NAMES) / COUNT / 2 for one in found)
    assert filled.held() == filled.wanted()


@pytest.mark.parametrize("order", [SHARES, SHARES[::-1]])
async def test_only_what_has_changed_moves(filled, order):
    for share in order:
        await filled.sync(share=share)
    changed = NAMES[::30]
    filled.put(**dict.fromkeys(changed, "new"))
    found = [await filled.sync(share=share) for share in order]
    assert sorted(name for one in found for name in one.moved) == sorted(changed)
    assert sum(one.kept for one in found) == len(NAMES) - len(changed)
    assert filled.held() == filled.wanted()
    assert sum(len(one.moved) for one in await sync_all(filled)) == 0
    assert (await filled.sync()).moved == []


async def test_a_process_that_is_killed_is_started_again(filled):
    filled.target.faults.append(Fault("write", error=Killed(), skip=50))
    with pytest.raises(DEATH):
        await filled.sync(share=SHARES[1])
    await sync_all(filled)
    assert filled.held() == filled.wanted()
    assert sum(len(one.moved) for one in await sync_all(filled)) == 0


async def test_the_first_one_removes(filled):
    await sync_all(filled)
    gone = {key for key in filled.source.objects if key.startswith("d/d0/")}
    for key in gone:
        del filled.source.objects[key]
    filled.put(**{"d1/new": "x"})
    previews = [await filled.make(share=share, delete=True).preview() for share in SHARES]
    assert [len(one.removals) for one in previews] == [len(gone), 0, 0]
    found = await sync_all(filled, delete=True)
    assert [len(one.removed) for one in found] == [len(gone), 0, 0]
    assert filled.held() == filled.wanted()


async def test_what_others_are_yet_to_move_is_not_removed(filled):
    """The first process knows the names of all."""
    filled.target.objects.update({f"copy/{name}": b"an older one" for name in NAMES})
    found = await filled.sync(share=SHARES[0], delete=True)
    assert found.removed == ()
    assert filled.held().keys() == set(NAMES)


async def test_archives_are_unpacked_by_one_process(filled):
    with pytest.raises(InvalidSpec, match="not unpacked by several processes"):
        filled.make(share=SHARES[0], unpack=True)
