"""A dataset fetched from a holder, with the source behind it."""

import asyncio
from collections import Counter

import pytest

from podferry.contract.dataset_reference import reference_to
from podferry.contract.errors import Corrupt, Throttled, Unavailable
from podferry.contract.spec import DatasetSpec
from podferry.sidecar.config.tuning import OUTAGE_SECONDS, PrefetchSettings
from podferry.sidecar.dataset import near_listing
from podferry.sidecar.dataset.dataset_job import DatasetJob
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
from podferry.storage.listing.dataset import list_dataset
from podferry.storage.memory.store import Fault, MemoryStore
from podferry.storage.timeouts_and_limits import LIMITS
from tests.support.dataset_site import fetch, held
from tests.support.holder_site import running_holder

SMALL = PrefetchSettings(range_bytes=1 << 20, processes=1)
LARGE = bytes(range(256)) * 4 * 4096  # four ranges
GONE = Unavailable.of("the store does not respond")


@pytest.fixture
async def site(content, tmp_path):
    content.objects |= {"d/large": LARGE, "d/one range": b"o" * (1 << 19)}
    (tmp_path / "stage").mkdir()
    jobs = []
    async with running_holder(content.uri, tmp_path / "held") as (stage, holder):
        while stage.complete is None:
            await stage.wait(0.01)
        content.calls.clear()

        def job(reference=None, **settings):
            spec = DatasetSpec(str(reference or content.uri), str(tmp_path / "stage"), **settings)
            placement = DatasetPlacement(tmp_path / "stage", tmp_path / "claim", holder=holder)
            jobs.append(DatasetJob(spec, placement, SMALL))
            return jobs[-1]

        yield job, stage
        for one in jobs:
            await one.close()


def expected(content):
    return {name.removeprefix("d/"): data for name, data in content.objects.items()}


def reads(content):
    return sorted({name for call, name in content.calls if call == "read"})


async def test_no_byte_is_taken_from_the_source(site, content, tmp_path):
    job, _ = site
    status = await fetch(job())
    assert held(tmp_path / "stage") == expected(content)
    assert reads(content) == []
    assert status.transfer.handed_over == 0


async def test_changed_and_new_files_are_the_sources(site, content, tmp_path):
    content.objects["d/a/1"] = b"other"
    content.objects["d/c"] = b"new"
    await fetch(site[0]())
    assert held(tmp_path / "stage") == expected(content)
    assert reads(content) == ["a/1", "c"]


SAME_SIZES = {
    "d/a/1": b"new",
    "d/large": LARGE[1:] + b"n",
    "d/one range": b"n" * (1 << 19),
}
"""New versions of files, as long as those that the holder has: in a bundle, in ranges, in one request."""


@pytest.mark.parametrize("changed", [*([name] for name in SAME_SIZES), [*SAME_SIZES]])
@pytest.mark.parametrize("is_frozen", [False, True])
async def test_other_versions_of_the_same_size_are_the_sources(site, content, tmp_path, changed, is_frozen):
    job, _ = site
    content.objects |= {name: SAME_SIZES[name] for name in changed}
    frozen = reference_to(await list_dataset(MemoryStore(content.uri))) if is_frozen else None
    await fetch(job(frozen))
    assert held(tmp_path / "stage") == expected(content)
    assert reads(content) == sorted(name.removeprefix("d/") for name in changed)


async def test_a_selection_and_a_shard(site, content, tmp_path):
    await fetch(site[0](include=("a/*",)))
    assert held(tmp_path / "stage") == {"a/1": b"one", "a/2": b"two"}
    assert reads(content) == []


async def test_a_frozen_dataset_needs_no_source(site, content, tmp_path):
    frozen = reference_to(await list_dataset(MemoryStore(content.uri)))
    content.faults += [Fault(call, error=GONE, times=999) for call in ("entries", "read", "stat")]
    await fetch(site[0](frozen))
    assert held(tmp_path / "stage") == expected(content)


async def test_damaged_files_at_the_holder_are_the_sources(site, content, tmp_path):
    job, stage = site
    (stage.root / "a/1").write_bytes(b"0ne")
    with (stage.root / "large").open("r+b") as file:
        file.seek(2_500_000)
        file.write(b"damaged")
    await fetch(job())
    assert held(tmp_path / "stage") == expected(content)
    assert reads(content) == ["a/1", "large"]


async def test_damage_is_named_if_the_source_is_away(site, content):
    job, stage = site
    frozen = reference_to(await list_dataset(MemoryStore(content.uri)))
    (stage.root / "a/1").write_bytes(b"0ne")
    content.faults += [Fault("read", error=GONE, times=999)]
    with pytest.raises((Corrupt, Unavailable)):
        await fetch(job(frozen))


async def test_a_holder_that_loses_its_files_costs_only_time(site, content, tmp_path):
    job, stage = site
    planned = await job().plan()
    for path in [*stage.root.rglob("*")]:
        if path.is_file():
            path.unlink()
    await planned.fetch()
    assert held(tmp_path / "stage") == expected(content)


async def test_eight_readers_that_start_with_the_holder_take_each_byte_once(content, tmp_path):
    content.objects["d/large"] = LARGE
    async with running_holder(content.uri, tmp_path / "held") as (_, holder):

        async def read(number):
            stage = tmp_path / f"stage-{number}"
            stage.mkdir()
            placement = DatasetPlacement(stage, tmp_path / f"claim-{number}", holder=holder)
            job = DatasetJob(DatasetSpec(str(content.uri), str(stage)), placement, SMALL)
            await fetch(job)
            await job.close()
            return held(stage)

        stages = await asyncio.gather(*map(read, range(8)))
    assert stages == [expected(content)] * 8
    taken = [name for call, name in content.calls if call == "read"]
    assert Counter(name for name in taken if name != "large") == {"a/1": 1, "a/2": 1}
    assert taken.count("large") == 1, "one range of 8 MiB, as the holder's settings say"


async def test_a_source_that_breaks_off_its_list_is_there(site, content, tmp_path):
    """Who takes the holder's list instead may train with files that have changed since."""
    content.objects["d/a/1"] = b"new"
    broken = Throttled.of("not now")
    content.faults += [
        Fault("entries", error=broken, truncate=2, after=True),
        Fault("entries", error=broken),
    ]
    job = site[0]()
    for _ in range(2):  # it breaks off, and then responds with nothing but its refusal
        with pytest.raises(Throttled):
            await job.plan()
    await (await job.plan()).fetch()
    assert held(tmp_path / "stage") == expected(content)


async def test_a_source_that_stays_away_after_it_broke_off_is_not_waited_for(
    site, content, tmp_path, monkeypatch
):
    before = expected(content)
    content.faults += [
        Fault("entries", error=GONE, truncate=2, after=True),
        Fault("entries", error=GONE, times=999),
    ]
    job = site[0]()
    with pytest.raises(Unavailable):
        await job.plan()
    monkeypatch.setattr(near_listing, "AWAY_SECONDS", 0.0)
    await (await job.plan()).fetch()
    assert held(tmp_path / "stage") == before


def test_a_source_that_stalls_once_has_another_chance():
    """And the cache's list is taken before the patience with the source ends."""
    assert LIMITS.stall_seconds < near_listing.AWAY_SECONDS < OUTAGE_SECONDS
