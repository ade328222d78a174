"""The index of a pack: old documents stay readable, and inconsistent ones are refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from podferry.contract.errors import Changed, Corrupt, FormatTooNew
from podferry.contract.manifest import Entry
from podferry.contract.pack import (
    INDEX,
    UNFINISHED_DIR,
    PackedFile,
    PackIndex,
    PackShard,
    check_shards,
    decode_index,
    encode_index,
    is_pack,
    other_objects,
)
from podferry.contract.spec import Unpack

GOLDEN = Path(__file__).parent / "golden" / "pack-v1.json"
FILES = (PackedFile("a/1.bin", 512, 3, "02" * 16), PackedFile("ä", 1536, 0, "03" * 16))
SHARD = PackShard("shard-00000.tar", 3072, "01" * 16, FILES)
COMPLETE = PackIndex("ab" * 32, (SHARD,))


def test_the_first_format_stays_readable() -> None:
    data = GOLDEN.read_bytes()
    assert decode_index(data, "golden") == COMPLETE
    assert encode_index(COMPLETE) == data


def test_its_entries_are_what_a_dataset_lists() -> None:
    assert COMPLETE.entries == (Entry("a/1.bin", 3, "02" * 16), Entry("ä", 0, "03" * 16))


def test_a_later_format_is_reported() -> None:
    with pytest.raises(FormatTooNew):
        decode_index(encode_index(msgspec.structs.replace(COMPLETE, format=2)), "x")


@pytest.mark.parametrize(
    "files",
    [
        (PackedFile("../x", 512, 3, ""),),
        (PackedFile("a", 512, 3, ""), PackedFile("a", 1024, 3, "")),
        (PackedFile("a", 512, 3, ""), PackedFile("a/b", 1024, 3, "")),
        (PackedFile("a", 512, 3, ""), PackedFile("b", 514, 3, "")),
        (PackedFile("a", 3070, 3, ""),),
        (PackedFile("a", 0, -1, ""),),
    ],
)
def test_an_index_that_cannot_be_true_is_corrupt(files: tuple[PackedFile, ...]) -> None:
    shard = msgspec.structs.replace(SHARD, members=files)
    with pytest.raises(Corrupt):
        decode_index(encode_index(PackIndex("", (shard,))), "x")


@pytest.mark.parametrize("name", ["../shard.tar", "/shard.tar", "a//b"])
def test_a_shard_is_next_to_its_index(name: str) -> None:
    with pytest.raises(Corrupt, match="not a plain relative path"):
        decode_index(encode_index(PackIndex("", (msgspec.structs.replace(SHARD, name=name),))), "x")


def test_all_shards_that_differ_are_named() -> None:
    two = PackIndex("", (SHARD, msgspec.structs.replace(SHARD, name="other.tar", members=())))
    with pytest.raises(Changed) as caught:
        check_shards(two, [Entry("other.tar", 1)], "s3://b/d")
    assert [problem.measured for problem in caught.value.problems] == [
        "shard-00000.tar: not found; the index lists 3,072 bytes",
        "other.tar: 1 bytes; the index lists 3,072 bytes",
    ]


def test_other_objects_are_distinguished_from_the_packs_own() -> None:
    names = [INDEX, "shard-00000.tar", f"{UNFINISHED_DIR}/begun.json", "README", "shard-00001.tar"]
    listed = [Entry(name, 1) for name in names]
    assert [entry.name for entry in other_objects(COMPLETE, listed)] == ["README", "shard-00001.tar"]
    assert [is_pack(listed, mode) for mode in Unpack] == [mode is not Unpack.NEVER for mode in Unpack]
    assert not is_pack([Entry(f"below/{INDEX}", 1)], Unpack.AUTO)
