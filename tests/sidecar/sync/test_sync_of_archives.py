"""Archives of the source are files of the destination; whatever changes, only what differs moves."""

from __future__ import annotations

import pytest

from podferry.contract.errors import Changed
from podferry.storage.memory.faults import Fault
from tests.support.archive_site import ENDINGS, TREE, archive_of


@pytest.mark.parametrize("ending", ENDINGS)
async def test_archives_are_unpacked_once(site, ending):
    site.put(**{f"data/train{ending}": archive_of(ending, TREE), "plain": b"p"})
    await site.sync(unpack=True)
    assert site.held() == {**{f"data/{name}": data for name, data in TREE.items()}, "plain": b"p"}
    again = await site.sync(unpack=True, delete=True)
    assert (again.moved, again.kept, again.removed) == ([], len(TREE) + 1, ())
    smaller = dict(list(TREE.items())[1:])
    site.put(**{f"data/train{ending}": archive_of(ending, smaller)})
    found = await site.sync(unpack=True, delete=True)
    assert (len(found.moved), found.removed) == (len(smaller), (f"data/{next(iter(TREE))}",))
    site.source.objects.pop(f"d/data/train{ending}")
    await site.sync(unpack=True, delete=True)
    assert site.held() == {"plain": b"p"}


@pytest.mark.parametrize("unpack", [True, False])
async def test_unpacking_from_now_on_or_no_longer(site, unpack):
    site.put(**{"z.tar": archive_of(".tar", TREE)})
    await site.sync(unpack=not unpack)
    found = await site.sync(unpack=unpack, delete=True)
    assert set(found.removed) == ({"z.tar"} if unpack else set(TREE))
    assert site.held() == (TREE if unpack else site.wanted())


async def test_the_globs_decide_on_an_archive_with_its_members(site):
    site.put(**{"plain.jpg": b"p", "z.tar": archive_of(".tar", TREE)})
    await site.sync(unpack=True)
    site.target.objects["copy/old.jpg"] = b"old"
    found = await site.sync(include=("*.jpg",), delete=True)
    assert found.removed == ("old.jpg",)
    assert site.held() == {**TREE, "plain.jpg": b"p"}
    first, *others = TREE
    site.put(**{"z.tar": archive_of(".tar", {name: TREE[name] for name in others})})
    found = await site.sync(include=("*.tar",), unpack=True, delete=True)
    assert found.removed == (first,)


async def test_a_preview_names_no_member_of_an_archive_that_it_would_unpack(site):
    site.put(**{"plain": b"p", "z.tar": archive_of(".tar", TREE)})
    await site.sync(unpack=True)
    site.target.objects["copy/old"] = b"old"
    site.put(**{"z.tar": archive_of(".tar", {**TREE, "more": b"m"})})
    found = await site.make(unpack=True, delete=True).preview()
    assert [removal.name for removal in found.removals] == ["old"]


async def test_a_cut_listing_without_an_archive_keeps_its_members(site):
    site.put(**{"0": b"a", "z.tar": archive_of(".tar", TREE)})
    await site.sync(unpack=True)
    before = site.held()
    site.source.faults.append(Fault("entries", truncate=1))
    with pytest.raises(Changed, match=r"z\.tar"):
        await site.sync(unpack=True, delete=True)
    assert site.held() == before


async def test_a_damaged_archive_is_named_and_the_rest_moves(site):
    site.put(**{"a": b"a", "z.tar": archive_of(".tar", TREE)[:700]})
    found = await site.sync(unpack=True)
    assert "the archive z.tar is not a complete .tar file" in str(found.problems[0])
    assert site.held()["a"] == b"a"
    assert (await site.make(unpack=True).preview()).plan.unpacks
