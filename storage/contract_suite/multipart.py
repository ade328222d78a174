"""What every store that writes in parts must do: imported by modules that provide `reopen` and `part`.

`reopen()` gives a fresh store at one and the same place, as a process that starts again opens it; `part` is
the size of a part, at least the store's `least`.
"""

import asyncio
import random

import pytest

from podferry.contract.errors import Corrupt, InvalidSpec, NotFound, Refused
from podferry.storage.checksum.checksums import crc64
from podferry.storage.contract_suite.inputs import names
from podferry.storage.multipart import UploadedPart


@pytest.fixture
def store(reopen):
    """The store under test."""
    return reopen()


@pytest.fixture
def unknown():
    """The error for an unknown upload."""
    return NotFound


@pytest.fixture
def independent():
    """Whether uploads of one name are; at Azure the others have to start again when one is completed."""
    return True


@pytest.fixture
def data(part):
    """Two full parts and a short one, each with different bytes."""
    return [
        random.Random(i).randbytes(size)  # noqa: S311  # no secret
        for i, size in enumerate((part, part, 1000))
    ]


async def send_all(store, name, upload, data):
    """Send all parts at the same time; returns their receipts."""
    sends = (store.multipart.send(name, upload, i + 1, memoryview(item)) for i, item in enumerate(data))
    return await asyncio.gather(*sends)


async def test_completed_parts_make_an_object(store, part, data):
    """Parts are invisible until `complete`, and one object after it."""
    upload = await store.multipart.begin("d/big", part)
    receipts = await send_all(store, "d/big", upload, data)
    assert [receipt.number for receipt in receipts] == [1, 2, 3]
    assert [receipt.crc64 for receipt in receipts] == [crc64(item) for item in data]
    assert [receipt.size for receipt in receipts] == [len(item) for item in data]
    assert await names(store) == []
    assert await store.children() == []
    with pytest.raises(NotFound):
        await store.stat("d/big")
    await store.multipart.complete("d/big", upload, receipts)
    assert bytes(await store.read("d/big")) == b"".join(data)
    assert (await store.stat("d/big")).size == sum(map(len, data))
    assert await names(store) == ["d/big"]


async def test_parts_can_be_sent_in_any_order(store, part, data):
    """Numbers order the parts, not the time."""
    upload = await store.multipart.begin("big", part)
    receipts = [await store.multipart.send("big", upload, i + 1, data[i]) for i in (2, 0, 1)]
    await store.multipart.complete("big", upload, receipts)
    assert bytes(await store.read("big")) == b"".join(data)


async def test_a_part_that_is_sent_again_replaces_the_first(store, part, data):
    """The newest bytes of a number count."""
    upload = await store.multipart.begin("big", part)
    old = [await store.multipart.send("big", upload, 1, data[1]) for _ in range(2)]
    receipts = await send_all(store, "big", upload, data)
    assert old[0].tag == old[1].tag != receipts[0].tag
    await store.multipart.complete("big", upload, receipts)
    assert bytes(await store.read("big")) == b"".join(data)


@pytest.mark.parametrize("size", [1, 1000])
async def test_one_short_part_is_enough(store, part, size):
    """An upload may have a single part of any size."""
    upload = await store.multipart.begin("small", part)
    receipt = await store.multipart.send("small", upload, 1, b"x" * size)
    await store.multipart.complete("small", upload, [receipt])
    assert bytes(await store.read("small")) == b"x" * size


async def test_the_last_part_can_have_full_size(store, part, data):
    """No short part is needed at the end."""
    upload = await store.multipart.begin("even", part)
    receipts = await send_all(store, "even", upload, data[:2])
    await store.multipart.complete("even", upload, receipts)
    assert bytes(await store.read("even")) == b"".join(data[:2])


async def test_a_process_that_starts_again_sends_only_what_is_missing(reopen, part, data):
    """An upload outlives its process: another one continues it."""
    first = reopen()
    upload = await first.multipart.begin("big", part)
    receipts = [await first.multipart.send("big", upload, 2, data[1])]
    await first.close()
    second = reopen()
    receipts.append(await second.multipart.send("big", upload, 3, data[2]))
    await second.close()
    third = reopen()
    receipts.append(await third.multipart.send("big", upload, 1, data[0]))
    await third.close()
    last = reopen()
    await last.multipart.complete("big", upload, receipts)
    assert bytes(await last.read("big")) == b"".join(data)


async def test_completing_again_succeeds_if_the_object_exists(reopen, store, part, data):
    """`complete` may be repeated, since its answer may be lost."""
    upload = await store.multipart.begin("big", part)
    receipts = await send_all(store, "big", upload, data)
    await store.multipart.complete("big", upload, receipts)
    await store.multipart.complete("big", upload, receipts)
    await reopen().multipart.complete("big", upload, receipts)
    assert bytes(await store.read("big")) == b"".join(data)


async def test_completing_again_fails_if_another_object_exists(store, unknown, part, data):
    """It never reports success for another object of the same size, or for none."""
    upload = await store.multipart.begin("big", part)
    receipts = await send_all(store, "big", upload, data)
    await store.multipart.complete("big", upload, receipts)
    await store.write("big", b"x" * sum(map(len, data)))
    with pytest.raises(unknown):
        await store.multipart.complete("big", upload, receipts)
    await store.delete(["big"])
    with pytest.raises(unknown):
        await store.multipart.complete("big", upload, receipts)


async def test_an_upload_replaces_an_existing_object(store, part, data):
    """The old object is read until the upload is complete."""
    await store.write("big", b"old")
    upload = await store.multipart.begin("big", part)
    receipts = await send_all(store, "big", upload, data)
    assert bytes(await store.read("big")) == b"old"
    await store.multipart.complete("big", upload, receipts)
    assert bytes(await store.read("big")) == b"".join(data)


async def test_uploads_of_one_name_are_never_mixed(store, unknown, independent, part, data):
    """Two uploads of a name are two objects, of which the last completed one stays."""
    one, two = [await store.multipart.begin("big", part) for _ in range(2)]
    assert one != two
    mine = await send_all(store, "big", one, data)
    other = await send_all(store, "big", two, data[::-1][1:])
    await store.multipart.complete("big", one, mine)
    assert bytes(await store.read("big")) == b"".join(data)
    if not independent:
        with pytest.raises(unknown):
            await store.multipart.complete("big", two, other)
        assert bytes(await store.read("big")) == b"".join(data)
        return
    await store.multipart.complete("big", two, other)
    assert bytes(await store.read("big")) == data[1] + data[0]


async def test_an_aborted_upload_is_unknown(store, unknown, part, data):
    """After `abort`, which may be repeated, nothing is left."""
    upload = await store.multipart.begin("big", part)
    receipts = await send_all(store, "big", upload, data)
    await store.multipart.abort("big", upload)
    await store.multipart.abort("big", upload)
    with pytest.raises(unknown):
        await store.multipart.send("big", upload, 1, data[0])
    with pytest.raises(unknown):
        await store.multipart.complete("big", upload, receipts)
    assert await names(store) == []


@pytest.mark.parametrize(
    "upload",
    [
        "",
        "none",
        "../../x",
        "0123456789abcdef-5242880",
        "sha256:",
        "sha256:../x",
        "crc64nvme:a&uploads=b?c#d",
        "crc64nvme:0c4f2bd9-9a53-4a4e-8a4c-6d2a4d3f8a2b",
    ],
)
async def test_an_upload_that_was_never_started_is_unknown(store, unknown, upload):
    """An identifier of nothing is refused, whatever text it is."""
    with pytest.raises(unknown):
        await store.multipart.send("big", upload, 1, b"x")
    with pytest.raises(unknown):
        await store.multipart.complete("big", upload, [UploadedPart(1, '"tag"', crc64(b"x"), 1)])
    await store.multipart.abort("big", upload)


async def test_missing_or_duplicated_parts_are_refused(store, part, data):
    """`complete` refuses gaps and repetitions with `Corrupt`."""
    upload = await store.multipart.begin("big", part)
    one, two, three = await send_all(store, "big", upload, data)
    for receipts in ([], [one, three], [two], [one, one, two, three]):
        with pytest.raises(Corrupt, match="missing or duplicated"):
            await store.multipart.complete("big", upload, receipts)
    assert await names(store) == []


async def test_what_does_not_fit_an_upload_is_refused(store, part):
    """Numbers and sizes outside the store's limits are refused."""
    upload = await store.multipart.begin("big", part)
    for number, data in ((0, b"x"), (store.multipart.max_parts + 1, b"x"), (1, b"")):
        with pytest.raises(Refused):
            await store.multipart.send("big", upload, number, data)
    with pytest.raises(InvalidSpec):
        await store.multipart.begin("big", store.multipart.min_part_bytes - 1)


@pytest.mark.parametrize("name", ["", "..", "a/../b", "/a"])
async def test_uploads_stay_inside_the_store(store, part, name):
    """No name leads out of the store."""
    with pytest.raises(InvalidSpec):
        await store.multipart.begin(name, part)
    with pytest.raises(InvalidSpec):
        await store.multipart.send(name, "0123456789abcdef-5242880", 1, b"x")
    with pytest.raises(InvalidSpec):
        await store.multipart.complete(name, "0123456789abcdef-5242880", [UploadedPart(1, "t", 0, 1)])


@pytest.mark.parametrize("name", ["with space/ünï+%20", "a&b=c?d#e", "~x;y@z:'\"(*)!"])
async def test_odd_names_are_sent_in_parts(store, part, name):
    """Odd names are kept."""
    upload = await store.multipart.begin(name, part)
    await store.multipart.complete(name, upload, [await store.multipart.send(name, upload, 1, b"odd")])
    assert bytes(await store.read(name)) == b"odd"
    assert await names(store) == [name]
