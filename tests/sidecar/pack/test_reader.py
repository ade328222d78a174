"""A pack is opened only if its index and its objects match."""

from __future__ import annotations

import msgspec
import pytest

from podferry.contract.errors import Changed, Corrupt, NotFound
from podferry.contract.manifest import Entry, freeze
from podferry.contract.pack import (
    INDEX,
    UNFINISHED_DIR,
    PackedFile,
    PackIndex,
    PackShard,
    decode_index,
    encode_index,
)


async def test_objects_next_to_the_shards_are_files_of_the_dataset(site):
    await site.pack()
    site.target.objects["d/README"] = b"read me"
    site.target.objects[f"d/{UNFINISHED_DIR}/begun.json"] = b"{}"
    await site.unpack()
    assert site.rest == ["README"]
    site.target.objects["d/large"] = b"of the same name"
    with pytest.raises(Corrupt, match="listed twice"):
        await site.unpack()


async def test_a_missing_or_short_shard_is_reported_before_any_fetch(site):
    result = await site.pack()
    first, second = (shard.name for shard in result.index.shards[:2])
    del site.target.objects[f"d/{first}"]
    site.target.objects[f"d/{second}"] = b"short"
    with pytest.raises(Changed) as caught:
        await site.unpack()
    assert [problem.measured.partition(":")[0] for problem in caught.value.problems] == [first, second]
    assert site.held() == {}


async def test_a_dataset_that_is_not_a_pack_is_refused(site):
    site.target.objects["d/a"] = b"1"
    with pytest.raises(NotFound, match="is not a pack"):
        await site.unpack()


def with_first_file(index, **changes):
    shard, *others = index.shards
    file, *rest = shard.members
    file = msgspec.structs.replace(file, **changes)
    shard = msgspec.structs.replace(shard, members=(file, *rest))
    return msgspec.structs.replace(index, shards=(shard, *others))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "../x"}, "not a plain relative path"),
        ({"name": "/etc/passwd"}, "not a plain relative path"),
        ({"name": "0/005.jpg"}, "lists a name twice"),
        ({"name": "1"}, "both a file and a directory"),
        ({"offset": 2000}, "is not within"),
        ({"size": 1 << 50}, "is not within"),
        ({"size": -1}, "is not within"),
        ({"offset": -5}, "is not within"),
    ],
)
async def test_an_index_with_impossible_members_is_corrupt(site, changes, words):
    result = await site.pack()
    site.target.objects[f"d/{INDEX}"] = encode_index(with_first_file(result.index, **changes))
    with pytest.raises(Corrupt, match=words):
        await site.unpack()
    assert site.held() == {}


def test_an_index_round_trips():
    index = PackIndex("ab", (PackShard("s.tar", 9, "cd", (PackedFile("a/b", 2, 3, "ef"),)),))
    assert decode_index(encode_index(index), "x") == index
    assert index.entries == freeze("memory://x", [Entry("a/b", 3, "ef")]).entries
