"""Listings of an imitation of OSS, and of servers that list badly."""

import pytest
from aiohttp import web

from podferry.contract.errors import Corrupt, Unavailable
from tests.support.listing_servers import s3_page
from tests.support.oss.bucket import StoredObject


async def names(store, prefix=""):
    return [entry.name async for entry in store.entries(prefix)]


async def test_listings_are_paged(oss, opened):
    store, count = opened("a set"), 2103
    written = [f"p/{i:04}+ %{i % 7}" for i in range(count)]
    oss.buckets["bucket"].objects |= {f"a set/{name}": StoredObject(b"x") for name in written}
    assert await names(store) == written
    assert await store.children("p") == [name.removeprefix("p/") for name in written]
    pages = [path for _, operation, path, _ in oss.requests if operation == "ListObjects"]
    assert len(pages) == 6
    assert "continuation-token=" in pages[1]
    await store.delete(written)
    assert await names(store) == []


async def test_markers_of_directories_are_left_out(oss, opened):
    store = opened("d")
    await store.write("a", b"1")
    bucket = oss.buckets["bucket"]
    bucket.objects["d/"] = bucket.objects["d/sub/"] = StoredObject(b"")
    assert await names(store) == ["a"]
    assert await store.children() == ["a", "sub/"]


def serving_pages(*pages):
    answers = iter(pages)

    async def answer(request):
        text = next(answers, pages[-1])
        return web.Response(text=text, content_type="application/xml", headers={"x-oss-request-id": "1"})

    return answer


@pytest.mark.parametrize(
    ("pages", "error", "said"),
    [
        ([s3_page(["d/a"], more=True, token="t")] * 2, Corrupt, "has no end"),
        ([s3_page(["e/a"])], Corrupt, "not below"),
        ([s3_page(["d/a"])[:40]], Unavailable, "cannot be read"),
        ([s3_page(["d/a"]).replace("<Size>1<", "<Size>x<")], Unavailable, "cannot be read"),
        (["<Other/>"], Exception, "does not respond as OSS"),
    ],
)
async def test_a_listing_is_complete_or_an_error(answering, opened, pages, error, said):
    store = opened("d", endpoint=await answering(serving_pages(*pages)))
    with pytest.raises(error, match=said):
        await names(store)


async def test_a_page_that_promises_more_without_a_token_is_followed_behind_its_last_name(answering, opened):
    pages = [s3_page(["d/a"], more=True), s3_page(["d/b"])]
    store = opened("d", endpoint=await answering(serving_pages(*pages)))
    assert await names(store) == ["a", "b"]


async def test_a_token_is_sent_as_it_was_before_its_encoding(answering, opened):
    asked = []
    pages = [s3_page(["d/a"], more=True, token="a%2Bb%3D"), s3_page(["d/b"])]
    answers = iter(pages)

    async def answer(request):
        asked.append(request.query.get("continuation-token"))
        return web.Response(text=next(answers), headers={"x-oss-request-id": "1"})

    store = opened("d", endpoint=await answering(answer))
    assert await names(store) == ["a", "b"]
    assert asked == [None, "a+b="]
