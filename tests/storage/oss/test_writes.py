"""Writes to an imitation of OSS."""

import pytest

from podferry.contract.errors import AlreadyExists, Refused, Unavailable
from podferry.storage.store import WriteMode


async def test_a_create_asks_oss_to_forbid_overwriting(oss, opened):
    store = opened()
    await store.write("a", b"1", WriteMode.CREATE)
    assert oss.requests[-1][3]["x-oss-forbid-overwrite"] == "true"
    with pytest.raises(AlreadyExists):
        await store.write("a", b"2", WriteMode.CREATE)
    await store.write("a", b"3")
    assert "x-oss-forbid-overwrite" not in oss.requests[-1][3]


async def test_a_bucket_with_versions_is_refused_for_commits(oss, opened):
    oss.buckets["bucket"].versioned = True
    with pytest.raises(Refused, match=r"keeps versions.*ignores x-oss-forbid-overwrite"):
        await opened().write("a", b"1", WriteMode.CREATE)
    await opened().write("a", b"1")


async def test_what_is_damaged_on_its_way_is_refused_and_sent_again(oss, opened):
    oss.damages = 1
    store = opened()
    await store.write("a", b"0123")
    assert oss.buckets["bucket"].objects["a"].data == b"0123"
    oss.damages = 9
    with pytest.raises(Unavailable, match="damaged"):
        await store.write("a", b"4567")
    assert oss.buckets["bucket"].objects["a"].data == b"0123"


@pytest.mark.parametrize("damages", [1, 9])
async def test_parts_that_are_damaged_leave_no_object(oss, opened, damages):
    oss.damages = damages
    store = opened()
    with pytest.raises(Unavailable, match="damaged"):
        await store.write("big", iter([bytes(1 << 20)] * 12))
    assert not oss.buckets["bucket"].objects
    assert not oss.buckets["bucket"].uploads


async def test_deletions_are_sent_a_thousand_at_a_time(oss, opened):
    store = opened("d")
    for name in ("0", "1100", "kept"):
        await store.write(name, b"1")
    await store.delete(f"{number}" for number in range(1101))
    assert [entry.name async for entry in store.entries()] == ["kept"]
    assert [operation for _, operation, _, _ in oss.requests].count("DeleteMultipleObjects") == 2
