"""Small files that are downloaded during a long listing: which ones, and when."""

from contextlib import nullcontext

import msgspec
import pytest

from podferry.contract.dataset_reference import Reference, reference_to
from podferry.contract.errors import Changed, Corrupt, Refused
from podferry.contract.manifest import Entry
from podferry.contract.spec import Shard, Unpack
from podferry.sidecar.dataset import listing_overlap as module
from podferry.sidecar.fetch import sinks
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.staging.staging_dir import OVERLAP_PREFIX, StagingDir
from podferry.sidecar.staging.volume_capacity import Capacity
from podferry.storage.listing import dataset as listing
from podferry.storage.listing.dataset import list_dataset
from podferry.storage.memory.store import MemoryStore
from tests.support import listing_overlap_site
from tests.support.listing_overlap_site import FILES, SIZE, SMALL, finished, held

place, job = listing_overlap_site.place, listing_overlap_site.job


async def test_small_files_are_fetched_during_the_listing(place, job, tmp_path):
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job()
    planned = await one.plan()
    assert sorted(place.requested) == sorted(SMALL), "each once, but neither the empty nor the large file"
    assert held(tmp_path / "stage") == SMALL
    await finished(planned, tmp_path)
    assert not set(place.requested[len(SMALL) :]) & set(SMALL)
    assert one.status.transfer.files == len(FILES)
    assert not (tmp_path / "stage" / PARTIAL_DIR).exists()


async def test_no_file_gets_its_name_before_the_listing_ends(place, job, tmp_path):
    seen = []

    async def look():
        await place.until(*SMALL)
        seen.extend(held(tmp_path / "stage"))

    place.pauses["e/last"] = [look]
    await (await job()).plan()
    assert seen
    assert all(name.startswith(f"{PARTIAL_DIR}/{OVERLAP_PREFIX}") for name in seen)


@pytest.mark.parametrize(
    "settings",
    [{"size": None}, {"shard": Shard(0, 2)}, {"unpack": Unpack.ALWAYS}, {"alone": False}],
    ids=["size unknown", "a part", "archives", "others share the room"],
)
async def test_nothing_is_fetched_before_the_size_is_known(place, job, tmp_path, settings):
    await (await job(**settings)).plan()
    assert place.requested == []
    assert held(tmp_path / "stage") == {}


async def test_nothing_is_fetched_during_a_short_listing(place, job, monkeypatch):
    monkeypatch.setattr(module, "MIN_ENTRIES", len(FILES))
    await (await job()).plan()
    assert place.requested == []


async def test_nothing_is_fetched_during_a_fast_listing(place, job, monkeypatch):
    monkeypatch.setattr(module, "FAST_LISTING_RATE", 0)
    await (await job()).plan()
    assert place.requested == []


@pytest.mark.parametrize("limited", ["volume_bytes", "memory_bytes", "node_bytes"])
async def test_nothing_is_fetched_if_it_may_not_fit(place, job, monkeypatch, limited):
    plenty = Capacity(1 << 40, memory_bytes=1 << 40, node_bytes=1 << 40)
    small = msgspec.structs.replace(plenty, **{limited: SIZE - 1})
    monkeypatch.setattr(module, "measure", lambda root: small)
    await (await job()).plan()
    assert place.requested == []


async def test_a_sized_reference_gives_the_size(place, job, tmp_path):
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    frozen = reference_to(await list_dataset(MemoryStore(place.uri)))
    one = await job(reference=str(frozen), size=None)
    planned = await one.plan()
    await finished(planned, tmp_path)


async def test_nothing_stays_if_the_digest_differs(place, job, tmp_path):
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job(reference=str(Reference(place.uri, "0" * 64, 100, 3)))
    with pytest.raises(Changed, match="has changed since it was frozen"):
        await one.plan()
    assert place.requested
    one.abandon()
    assert held(tmp_path / "stage") == {}
    assert list((tmp_path / "stage").iterdir()) == []


async def test_nothing_stays_if_it_does_not_fit_after_all(place, job, tmp_path):
    """For example, if the listing has more than its size says: the job is then abandoned."""
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    one = await job()
    await one.plan()
    one.abandon()
    assert list((tmp_path / "stage").iterdir()) == []


async def test_only_selected_files_are_fetched(place, job):
    place.pauses["e/last"] = [lambda: place.until("d/11")]
    one = await job(include=("d/1?", "e/*"), exclude=("d/12",))
    await one.plan()
    assert set(place.requested) <= {f"d/1{digit}" for digit in range(10)} - {"d/12"}


async def test_nothing_is_fetched_into_a_filled_staging_directory(place, job, tmp_path):
    first = await job()
    await (await first.plan()).fetch(log_progress=False)
    (tmp_path / "stage" / "d" / "05").unlink()
    place.requested.clear()
    second = await job()
    planned = await second.plan()
    assert place.requested == []
    await planned.fetch(log_progress=False)
    assert held(tmp_path / "stage") == FILES
    assert second.status.files_kept == len(FILES) - 1


async def test_early_files_of_a_killed_start_are_not_adopted(place, job, tmp_path):
    """They have numbers instead of names, which are lost."""
    left = tmp_path / "stage" / PARTIAL_DIR / f"{OVERLAP_PREFIX}1"
    left.mkdir(parents=True)
    (left / "0").write_bytes(b"of another listing")
    one = await job()
    planned = await one.plan()
    await finished(planned, tmp_path)


async def test_another_agents_staging_directory_is_left_alone(place, job, tmp_path):
    other = StagingDir(tmp_path / "stage", tmp_path / "claim")
    assert other.make_overlap_dir() is not None
    one = await job()
    with pytest.raises(Refused, match="another podferry is using the stage"):
        await one.plan()
    one.abandon()
    assert list((tmp_path / "stage" / PARTIAL_DIR).glob(f"{OVERLAP_PREFIX}*"))
    assert place.requested == []
    other.close()


async def test_an_object_that_changes_during_the_listing_is_fetched_again(place, job, tmp_path):
    """For example, if the listing is restarted by directory and something was written between the two."""
    place.changed["d/04"] = [Entry("d/00", len(FILES["d/00"]), "an older tag")]
    place.pauses["e/last"] = [lambda: place.until(*SMALL)]
    original = listing.list_entries

    async def newest(store, seen):
        found = await original(store, seen)
        return [entry for entry in found if entry.tag != "an older tag"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "list_entries", newest)
        one = await job()
        planned = await one.plan()
    await finished(planned, tmp_path)


async def test_names_that_cannot_be_files_are_refused_and_nothing_is_written_outside(place, job, tmp_path):
    place.changed["d/05"] = [Entry("../outside", 4, "tag")]
    place.content.objects["set/../outside"] = b"gone"
    place.pauses["e/last"] = [lambda: place.until("d/19")]
    one = await job()
    with pytest.raises(Corrupt, match="outside"):
        await one.plan()
    one.abandon()
    assert list((tmp_path / "stage").iterdir()) == []
    assert not (tmp_path / "outside").exists()


async def test_nothing_that_has_to_be_confirmed_is_fetched_early(place, job, tmp_path, monkeypatch):
    confirmed = []

    async def confirm(entries):
        confirmed.extend(entry.name for entry in entries)

    monkeypatch.setattr(MemoryStore, "confirming", lambda store: nullcontext(confirm), raising=False)
    monkeypatch.setattr(sinks, "PROMPT_SECONDS", 0.0)
    one = await job()
    planned = await one.plan()
    assert place.requested == []
    await finished(planned, tmp_path)
    assert {*confirmed} == {*FILES} - {"d/empty"}
