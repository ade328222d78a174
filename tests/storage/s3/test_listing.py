"""A listing of S3 is complete or an error that names what the server does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import quote_plus

import pytest
from aiohttp import web

from podferry.contract.errors import Corrupt, EmptyDataset, FerryError, Unavailable
from podferry.storage.factory import open_store
from podferry.storage.http.blocking_get import BlockingGets
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.s3 import listing
from podferry.storage.timeouts_and_limits import Limits
from tests.support.listed_s3 import URI, config, opened
from tests.support.listing_servers import ListedBucket, ListingServer, s3_page, xml
from tests.support.patience import PATIENCE
from tests.support.store_calls import listed

Handler = Callable[[web.Request], web.Response]
LIST_OF_ALL = r"does not list all of s3://bucket/d \(no way behind {} names"


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 3000])
async def test_a_listing_costs_one_request_a_page(answering, count: int) -> None:
    bucket = ListedBucket(count)
    assert len(await listed(opened(await answering(bucket.answer)))) == count
    assert len(bucket.asked) == max(1, -(-count // 1000))


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_server_that_does_not_say_where_more_is_is_listed_behind_the_last_name(
    answering, size: int
) -> None:
    store = opened(await answering(ListedBucket(2 * size + 1, page_objects=size, tokens=False).answer))
    assert len(await listed(store)) == 2 * size + 1
    assert len(await store.children()) == 2 * size + 1


@pytest.mark.parametrize("size", [0, 1, 7, 1000])
async def test_a_server_that_knows_no_way_to_the_rest_is_named(answering, size: int) -> None:
    """Such as one that knows the first version of the request alone."""
    bucket = ListedBucket(2 * size + 1, page_objects=size, tokens=False, start_after=False)
    store = opened(await answering(bucket.answer))
    for call in (listed(store), store.children()):
        with pytest.raises(Corrupt, match=LIST_OF_ALL.format(f"{size:,}")):
            await call


async def test_directories_are_continued_behind_the_last_one(answering) -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.query["delimiter"] == "/"
        after = request.query.get("start-after", "")
        prefixes = [name for name in ("d/a/", "d/b/", "d/c/") if name > after and not after.startswith(name)]
        return xml(s3_page([], prefixes=prefixes[:1], more=len(prefixes) > 1))

    assert await opened(await answering(answer)).children() == ["a/", "b/", "c/"]


@pytest.mark.parametrize("size", [0, 1, 3, 1000])
async def test_a_page_that_comes_again_is_named_at_once(answering, size: int) -> None:
    names, asked = [f"d/{number:05}" for number in range(size)], []

    async def again(request: web.Request) -> web.Response:
        asked.append(request)
        return xml(s3_page(names, more=True, token="next"))

    store = opened(await answering(again))
    for call in (listed(store), store.children()):
        asked.clear()
        with pytest.raises(Corrupt, match=r"the listing of s3://bucket/d has no end .*'next' comes again"):
            await call
        assert len(asked) == 2


@pytest.mark.parametrize("size", [0, 3])
async def test_new_tokens_that_lead_nowhere_are_bounded(
    answering, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(listing, "MAX_EMPTY_PAGES", 20)
    names, asked = [f"d/{number:05}" for number in range(size)], []

    async def again(request: web.Request) -> web.Response:
        asked.append(request)
        return xml(s3_page(names, more=True, token=f"token-{len(asked)}"))

    with pytest.raises(Corrupt, match=r"has no end .*(20 empty pages|a page begins with 'd/00000' again)"):
        await listed(opened(await answering(again)))
    assert len(asked) == (21 if size == 0 else 2)


async def test_more_objects_than_can_be_real_are_named(answering, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing.ListingProgress.__init__, "__defaults__", (1500,))
    with pytest.raises(Corrupt, match=r"no end \(2,000 objects"):
        await listed(opened(await answering(ListedBucket(2500).answer)))


async def test_a_token_that_is_not_needed_and_an_empty_page_are_fine(answering) -> None:
    pages = {"": ([], True, "1"), "1": (["d/a"], True, "2"), "2": (["d/b"], False, "2")}

    async def answer(request: web.Request) -> web.Response:
        names, more, token = pages[request.query.get("continuation-token", "")]
        return xml(s3_page(names, more=more, token=token))

    assert await listed(opened(await answering(answer))) == ["a", "b"]


def page_of(names: list[str], stated: str, extra: str = "") -> web.Response:
    """A page with this in the place of whether there is more."""
    return xml(s3_page(names).replace("<IsTruncated>false</IsTruncated>", stated + extra))


FALSE, TRUE = "<IsTruncated>false</IsTruncated>", "<IsTruncated>true</IsTruncated>"
TOKEN, MARKER = "<NextContinuationToken>T</NextContinuationToken>", "<NextMarker>d/b</NextMarker>"
CONTINUED = {
    "false and a token": (FALSE, TOKEN),
    "false and a marker": (FALSE, MARKER),
    "no statement and a marker": ("", MARKER),
    "no statement and a full page": ("", "<MaxKeys>2</MaxKeys>"),
    "1": ("<IsTruncated>1</IsTruncated>", ""),
}


@pytest.mark.parametrize("case", CONTINUED)
async def test_a_listing_goes_on_where_a_page_hints_at_more(answering, case: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        if "continuation-token" in request.query or request.query.get("start-after") == "d/b":
            return xml(s3_page(["d/c", "d/d"]))
        return page_of(["d/a", "d/b"], *CONTINUED[case])

    assert await listed(opened(await answering(answer))) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("stated", "extra", "last"),
    [
        (FALSE, TOKEN, ""),
        (FALSE, TOKEN, TOKEN),
        (FALSE, MARKER, ""),
        (FALSE, MARKER, MARKER),
        ("", MARKER, ""),
        ("", "<MaxKeys>2</MaxKeys>", "<MaxKeys>2</MaxKeys>"),
    ],
)
async def test_a_hint_at_more_may_lead_to_an_empty_page(
    answering, stated: str, extra: str, last: str
) -> None:
    async def answer(request: web.Request) -> web.Response:
        further = "continuation-token" in request.query or "start-after" in request.query
        return page_of([], stated, last) if further else page_of(["d/a", "d/b"], stated, extra)

    assert await listed(opened(await answering(answer))) == ["a", "b"]


SHORT: dict[str, tuple[Handler, str]] = {
    "promised": (
        lambda request: page_of([], FALSE) if "start-after" in request.query else page_of(["d/a"], TRUE),
        LIST_OF_ALL.format("1") + r": the page behind them is empty, although there is more\)",
    ),
    "unsorted": (
        lambda request: page_of(["d/b", "d/a"], TRUE),
        LIST_OF_ALL.format("2") + r": they are not sorted\)",
    ),
    "no way behind a full page": (
        lambda request: page_of(["d/a"], "", "<MaxKeys>1</MaxKeys>"),
        LIST_OF_ALL.format("1"),
    ),
    "prefixes": (
        lambda request: xml(s3_page(["d/a"], prefixes=["d/sub/"])),
        r"directories of s3://bucket/d .*\(the directory 'd/sub/'\)",
    ),
    "delimiter": (
        lambda request: page_of(["d/a"], FALSE, "<Delimiter>/</Delimiter>"),
        r"directories of s3://bucket/d .*\(the delimiter '/'\)",
    ),
}


@pytest.mark.parametrize("case", SHORT)
async def test_a_listing_that_cannot_be_all_is_an_error(answering, case: str) -> None:
    handler, message = SHORT[case]

    async def answer(request: web.Request) -> web.Response:
        return handler(request)

    with pytest.raises(Corrupt, match=message):
        await listed(opened(await answering(answer)))


async def test_keys_may_come_encoded(answering) -> None:
    keys = ["d/a b+c%20", "d/ü\x01", "d/plain"]

    async def answer(request: web.Request) -> web.Response:
        assert request.query["encoding-type"] == "url"
        body = s3_page([quote_plus(key, safe="/") for key in keys])
        return xml(body.replace("<IsT", "<EncodingType>url</EncodingType><IsT"))

    assert await listed(opened(await answering(answer))) == sorted(key[2:] for key in keys)


FAILURES: dict[str, Handler | None] = {
    "500": lambda _: web.Response(status=500, text="<Error><Code>InternalError</Code></Error>"),
    "503": lambda _: web.Response(status=503, text="<Error><Code>SlowDown</Code></Error>"),
    "200": lambda _: web.Response(text="<Error><Code>InternalError</Code></Error>"),
    "403": lambda _: web.Response(status=403, text="<Error><Code>AccessDenied</Code></Error>"),
    "404": lambda _: web.Response(status=404, text="<Error><Code>NoSuchKey</Code></Error>"),
    "hangs": None,
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_page_that_cannot_be_listed_is_an_error(answering, failure: str) -> None:
    bucket, handler = ListedBucket(1500), FAILURES[failure]

    async def answer(request: web.Request) -> web.Response:
        if "continuation-token" not in request.query:
            return await bucket.answer(request)
        if handler is None:
            await asyncio.sleep(5)
            return web.Response()
        return handler(request)

    limits = Limits(stall_seconds=1, request_seconds=2, retries=1, retry_seconds=1)
    with pytest.raises(FerryError):
        await listed(open_store(URI, config(await answering(answer)), limits))


@pytest.mark.parametrize("body", ["", "<Error><Code>NoSuchKey</Code></Error>"])
async def test_a_later_page_that_is_missing_is_no_missing_dataset(answering, body: str) -> None:
    bucket = ListedBucket(1500)

    async def answer(request: web.Request) -> web.Response:
        if "continuation-token" in request.query:
            return web.Response(status=404, text=body)
        return await bucket.answer(request)

    store = opened(await answering(answer))
    for call in (listed(store), store.children()):
        broken = r"the listing of s3://bucket/d breaks off \(the page behind 1,000 names is not found"
        with pytest.raises(Unavailable, match=broken):
            await call


async def test_an_empty_listing_is_an_empty_dataset(answering) -> None:
    endpoint = await answering(ListingServer().s3)
    with pytest.raises(EmptyDataset):
        await open_dataset(URI / "none", config(endpoint))


async def test_connections_are_closed_after_the_last_listing_in_progress(answering) -> None:
    """A store that only lists needs no `close`; an unclosed session would be a warning here."""
    store = opened(await answering(ListedBucket(30, page_objects=10).answer))
    await asyncio.gather(listed(store), listed(store), store.children())
    assert len(await listed(store)) == 30


async def test_a_listing_may_begin_while_the_connections_of_another_are_closed(
    answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, closing, go_on = BlockingGets.close, asyncio.Event(), asyncio.Event()

    async def slow_close(gets: BlockingGets) -> None:
        await close(gets)
        closing.set()
        await go_on.wait()

    monkeypatch.setattr(BlockingGets, "close", slow_close)
    bucket = ListedBucket(3)

    async def answer(request: web.Request) -> web.Response:
        if bucket.asked:
            go_on.set()
        return await bucket.answer(request)

    store = opened(await answering(answer))
    first = asyncio.create_task(listed(store))
    await closing.wait()
    second = asyncio.create_task(listed(store))
    await asyncio.wait({second}, timeout=PATIENCE)
    go_on.set()
    assert [len(names) for names in await asyncio.gather(first, second)] == [3, 3]
