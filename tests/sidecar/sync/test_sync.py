"""A destination is equal to its source afterwards, whatever happened before, and only what differs moves."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.dataset_reference import reference_to
from podferry.contract.errors import (
    AccessDenied,
    Changed,
    Corrupt,
    EmptyDataset,
    InvalidSpec,
    Refused,
    Unavailable,
)
from podferry.contract.manifest import Entry, freeze
from podferry.contract.selection import select
from podferry.contract.uri import parse_uri
from podferry.sidecar.sync import plan, record_log
from podferry.sidecar.sync.plan import Reason
from podferry.sidecar.sync.record_log import RecordLog
from podferry.storage.listing.dataset import list_dataset
from podferry.storage.memory.faults import Fault
from podferry.storage.memory.server_copy import MemoryServerCopy
from podferry.storage.memory.store import MemoryStore
from tests.support.archive_site import TREE, archive_of
from tests.support.memory_bucket import Killed
from tests.support.sync_site import DEATH, FILES, SyncSite


@pytest.fixture
def filled(site):
    site.put(**FILES)
    return site


def written(site):
    return [name for call, name in site.target.calls if call == "write" and ".podferry" not in name]


async def test_everything_moves_once(filled):
    first = await filled.sync()
    assert filled.held() == FILES
    assert (sorted(first.moved), first.bytes, first.kept) == (sorted(FILES), 3503, 0)
    again = await filled.sync()
    assert (again.moved, again.bytes, again.kept, len(filled.records())) == ([], 0, 4, 1)


async def test_within_one_store_the_store_copies(filled):
    bucket = parse_uri(filled.source_uri).bucket
    place = f"memory://{bucket}/other"
    found = await filled.sync(target=place)
    assert (len(found.moved), found.bytes) == (4, 3503)
    calls = [
        call for call, name in filled.source.calls if call in ("read", "write") and ".podferry" not in name
    ]
    assert calls == []
    assert (await filled.sync(target=place)).kept == 4
    assert filled.source.objects["other/d/e/c"] == FILES["d/e/c"]


async def test_a_source_that_changes_while_the_store_copies_is_copied_again(filled):
    bucket, changed = parse_uri(filled.source_uri).bucket, []

    class Changing(MemoryServerCopy):
        async def copy(self, source, target):
            copied = await super().copy(source, target)
            if source == "d/a" and not changed:
                changed.append(source)
                filled.put(a=b"2")
            return copied

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("podferry.storage.memory.store.MemoryServerCopy", Changing)
        found = await filled.sync(target=f"memory://{bucket}/other")
    assert (found.problems, filled.source.objects["other/a"]) == ((), b"2")


async def test_ten_of_ten_thousand_files_move(site):
    site.put(**{f"{number // 100}/{number}": str(number) for number in range(10_000)})
    await site.sync()
    site.target.calls.clear()
    site.put(**{f"{number}/{number * 100}": "other" for number in range(10)})
    found = await site.sync()
    assert (len(found.moved), found.kept, len(written(site))) == (10, 9990, 10)


async def test_a_preview_says_what_and_why_and_changes_nothing(filled):
    await filled.sync()
    filled.put(a=b"2", new=b"n")
    filled.source.objects.pop("d/empty")
    before = dict(filled.target.objects)
    found = await filled.make(delete=True).preview()
    reasons = {move.entry.name: move.reason for move in found.plan.moves}
    assert reasons == {"a": Reason.UNPROVEN, "new": Reason.NEW}
    assert [removal.name for removal in found.removals] == ["empty"]
    assert filled.target.objects == before


async def test_a_copy_that_somebody_has_changed_is_moved_again(filled):
    await filled.sync()
    filled.target.objects["copy/a"] = b"9"
    assert (await filled.sync()).moved == ["a"]
    assert filled.held() == FILES


async def test_globs_leave_the_rest_alone_at_both_places(filled):
    filled.target.objects["copy/z.keep"] = b"mine"
    filled.target.objects["copy/d/old"] = b"old"
    found = await filled.sync(include=("d/",), delete=True)
    assert found.removed == ("d/old",)
    assert filled.held() == {"d/b": b"22", "d/e/c": FILES["d/e/c"], "z.keep": b"mine"}


async def test_an_empty_source_deletes_nothing(filled):
    await filled.sync()
    filled.source.objects.clear()
    with pytest.raises(EmptyDataset):
        await filled.sync(delete=True)
    filled.put(**FILES)
    with pytest.raises(EmptyDataset):
        await filled.sync(delete=True, include=("*.none",))
    assert filled.held() == FILES


async def test_a_listing_that_is_cut_deletes_nothing(filled):
    await filled.sync()
    filled.source.faults.append(Fault("entries", truncate=2))
    with pytest.raises(Changed, match="leaves out files that are there"):
        await filled.sync(delete=True)
    filled.source.faults.append(
        Fault("entries", truncate=1, error=Unavailable.of("cut"), after=True, times=9)
    )
    with pytest.raises(Unavailable):
        await filled.sync(delete=True)
    assert filled.held() == FILES


async def test_one_file_as_the_source_says_nothing_of_others(filled):
    assert (await filled.sync(source=f"{filled.source_uri}/d/b")).moved == ["b"]
    with pytest.raises(InvalidSpec, match="the source is one file"):
        await filled.sync(source=f"{filled.source_uri}/d/b", delete=True)


async def test_a_source_that_changes_while_it_is_synced_is_listed_again(filled):
    filled.source.faults.append(Fault("read", "a", error=Changed.of("other")))
    found = await filled.sync()
    assert (filled.held(), found.problems) == (FILES, ())
    assert (sorted(found.moved), found.kept) == (sorted(FILES), 0)
    filled.source.faults.append(Fault("read", "new", times=99, error=Changed.of("it changes all the time")))
    filled.put(new=b"new")
    found = await filled.sync(delete=True)
    assert [problem.what for problem in found.problems] == ["it changes all the time"]
    assert filled.held() == FILES


async def test_one_bad_file_does_not_stop_the_others_and_removes_nothing(filled):
    filled.target.objects["copy/old"] = b"old"
    filled.source.faults.append(Fault("read", "a", times=9, error=Corrupt.of("damaged")))
    found = await filled.sync(delete=True)
    assert ([str(one) for one in found.problems], found.removed) == (["damaged."], ())
    assert set(filled.held()) == {"d/b", "d/e/c", "empty", "old"}


async def test_a_store_that_refuses_stops_the_sync(filled):
    filled.target.faults.append(Fault("write", "d/*", times=99, error=AccessDenied.of("no")))
    with pytest.raises(AccessDenied):
        await filled.sync()


async def test_a_frozen_source_that_has_changed_is_refused(filled):
    digest = "0" * 64
    with pytest.raises(Changed, match="since it was frozen"):
        await filled.sync(source=f"{filled.source_uri}#sha256={digest}")
    assert filled.target.objects == {}


async def test_a_frozen_source_is_synced_with_its_own_selection(filled):
    manifest = await list_dataset(MemoryStore(parse_uri(filled.source_uri)))
    selected = freeze(manifest.uri, [entry for entry in manifest.entries if entry.name.startswith("d/")])
    reference = str(reference_to(selected, ("d/",)))
    assert sorted((await filled.sync(source=reference)).moved) == ["d/b", "d/e/c"]
    with pytest.raises(InvalidSpec, match="selects other files"):
        await filled.sync(source=reference, include=("a",))


async def test_names_that_the_destination_cannot_hold_are_named(filled):
    filled.put(**{"bad\n": b"x", "e/../f": b"x"})
    with pytest.raises(Corrupt, match="control characters") as raised:
        await filled.sync()
    assert len(raised.value.problems) == 2
    filled.source.objects.clear()
    long = "/".join(["x" * 250] * 5)
    filled.put(**{long: b"x"})
    with pytest.raises(Refused, match=r"1,2\d\d bytes, at most 1,024"):
        await filled.sync(target="s3://bucket/copy")


async def test_untagged_files_move_again_unless_their_size_is_enough(site, monkeypatch):
    monkeypatch.setattr("podferry.storage.memory.store._entry", _untagged)
    site.put(**FILES)
    await site.sync()
    assert sorted((await site.sync()).moved) == sorted(FILES)
    assert (await site.sync(size_only=True)).moved == []


async def test_equal_sizes_prove_nothing_to_a_later_sync(filled):
    filled.target.objects["copy/a"] = b"9"
    assert (await filled.sync(size_only=True)).kept == 1
    assert (await filled.sync()).moved == ["a"]
    assert filled.held() == FILES


async def test_a_sync_of_other_files_keeps_the_proofs_of_these(filled, monkeypatch):
    monkeypatch.setattr(plan, "same_checksum", lambda first, second: False)
    filled.put(**{"x.tar": archive_of(".tar", TREE)})
    await filled.sync(unpack=True)
    filled.put(b=b"b")
    for include in (("a", "b"), ("d/",), ("b",)):
        await filled.sync(include=include)
    assert (await filled.sync(unpack=True)).moved == []
    assert len(filled.records()) == 1


def _untagged(name, data):
    return Entry(name, len(data))


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("call", range(12))
async def test_killed_at_any_call_the_next_sync_ends_it(site, call, checksums, monkeypatch):
    """A process that dies runs nothing more: every later call fails, too."""
    monkeypatch.setattr(record_log, "FLUSH_SECONDS", 0)
    monkeypatch.setattr(record_log, "FLUSH_SHARE", 0)
    if not checksums:
        monkeypatch.setattr(plan, "same_checksum", lambda first, second: False)
    site.put(**FILES)
    site.target.faults.append(Fault("*", skip=call, times=999, error=Killed()))
    with pytest.raises(DEATH):
        await site.sync()
    site.target.faults.clear()
    there = site.held()
    assert all(FILES[name] == data for name, data in there.items())
    log = RecordLog(MemoryStore(parse_uri(site.target_uri)), site.source_uri, 1)
    proven = set(there) if checksums else {file.name for file in (await log.load()).files}
    site.target.calls.clear()
    await site.sync()
    assert site.held() == FILES
    assert set(written(site)) == set(FILES) - proven
    assert (await site.sync()).moved == []


NAMES = st.sampled_from([f"{folder}{name}" for folder in ("", "d/", "d/e/", "f g/") for name in "xyzü"])
TREES = st.dictionaries(NAMES, st.binary(max_size=3), min_size=1, max_size=8)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trees=st.lists(TREES, min_size=1, max_size=4), exclude=st.sampled_from([(), ("d/",), ("x",)]))
async def test_random_trees_and_edits(trees, exclude, quick_retries):
    site = SyncSite("random")
    try:
        before = {}
        for tree in trees:
            wanted = {entry.name: tree[entry.name] for entry in select(map(_named, tree), (), exclude)}
            site.source.objects.clear()
            site.put(**tree)
            if not wanted:
                with pytest.raises(EmptyDataset):
                    await site.sync(delete=True, exclude=exclude)
                continue
            found = await site.sync(delete=True, exclude=exclude)
            assert site.held() == wanted
            assert set(found.moved) == {name for name in wanted if before.get(name) != wanted[name]}
            assert (await site.sync(delete=True, exclude=exclude)).moved == []
            before = wanted
    finally:
        site.close()


def _named(name):
    return Entry(name, 0)


async def test_two_syncs_at_once_agree(filled):
    await asyncio.gather(filled.sync(), filled.sync())
    assert filled.held() == FILES
    assert (await filled.sync()).moved == []
