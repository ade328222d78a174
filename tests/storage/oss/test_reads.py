"""Reads of an imitation of OSS, and of servers that respond with something else."""

import pytest
from aiohttp import web

from podferry.contract.errors import Changed, Corrupt, Unavailable

OWN = {"x-oss-request-id": "1", "ETag": '"A"'}


async def test_a_range_past_the_end_is_refused_by_oss(oss, opened):
    store = opened()
    await store.write("a", b"0123")
    for start, length in ((2, 9), (9, 1)):
        with pytest.raises(Corrupt, match="requested"):
            await store.read("a", start, length)
    assert oss.requests[-1][3]["x-oss-range-behavior"] == "standard"


async def test_another_version_is_recognized_by_its_tag_and_size(opened):
    store = opened()
    await store.write("a", b"0123")
    tag = (await store.stat("a")).tag
    await store.write("a", b"4567")
    with pytest.raises(Changed):
        await store.read("a", 0, 2, tag)
    with pytest.raises(Changed, match="5 were listed"):
        await store.read("a", 0, 2, size=5)


async def test_complete_objects_are_compared_with_their_checksum(oss, opened):
    store = opened()
    await store.write("a", b"0123")
    stored = oss.buckets["bucket"].objects["a"]
    stored.data = b"0124"
    with pytest.raises(Unavailable, match="damaged"):
        await store.read("a")
    assert bytes(await store.read("a", 0, 3)) == b"012"


@pytest.mark.parametrize(
    ("status", "headers", "body", "error", "said"),
    [
        (200, {}, b"0123456789", Unavailable, "not what was requested"),
        (206, {"Content-Range": "bytes 0-3/10"}, b"0123", Unavailable, "not what was requested"),
        (206, {}, b"2345", Unavailable, "not what was requested"),
        (206, {"Content-Range": "bytes 2-3/10"}, b"23", Unavailable, "ends too early"),
        (206, {"Content-Range": "bytes 2-8/10"}, b"2345678", Corrupt, "requested 4 from 2"),
    ],
)
async def test_another_response_than_the_range_is_an_error(
    answering, opened, status, headers, body, error, said
):
    async def answer(request):
        return web.Response(status=status, headers=OWN | headers, body=body)

    store = opened(endpoint=await answering(answer))
    with pytest.raises(error, match=said):
        await store.read("a", 2, 4)


async def test_an_object_without_a_size_is_an_error(answering, opened):
    async def answer(request):
        response = web.StreamResponse(headers=OWN)
        response.enable_chunked_encoding()
        await response.prepare(request)
        return response

    store = opened(endpoint=await answering(answer))
    with pytest.raises(Unavailable, match="did not say the size"):
        await store.stat("a")
    with pytest.raises(Unavailable, match="not what was requested"):
        await store.read("a")
