"""A listing of S3 is complete or an error that names what the server does."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from urllib.parse import quote_plus

import pytest
from aiohttp import web

from podferry.contract.errors import Corrupt, EmptyDataset, FerryError, InvalidSpec, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.http.blocking_get import BlockingGets
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.s3 import listing
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.listing_servers import ListedBucket, ListingServer, s3_page, xml
from tests.support.patience import PATIENCE
from tests.support.store_calls import KEYS, listed

Handler = Callable[[web.Request], web.Response]
PATIENT = Limits(connect_seconds=PATIENCE, stall_seconds=PATIENCE, request_seconds=PATIENCE, retries=1)
URI = parse_uri("s3://bucket/d")
LIST_OF_ALL = r"does not list all of s3://bucket/d \(no way behind {} names"


def config(endpoint: str) -> StoreConfig:
    return StoreConfig(endpoint=endpoint, credentials=KEYS)


def opened(endpoint: str) -> Store:
    return open_store(URI, config(endpoint), PATIENT)


def always(response: Callable[[], web.Response]) -> Callable[[web.Request], object]:
    async def answer(request: web.Request) -> web.Response:
        return response()

    return answer


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


@pytest.mark.parametrize("status", [202, 206])
async def test_a_listing_with_another_status_is_not_taken_for_all(answering, status: int) -> None:
    answer = always(lambda: web.Response(status=status, text=s3_page(["d/a"])))
    with pytest.raises(Unavailable, match=rf"cannot be read \(HTTP {status}.*the status of a listing is 200"):
        await listed(opened(await answering(answer)))


@pytest.mark.parametrize("key", ["other/a.txt", "d", "dd/a", "D/a"])
async def test_keys_that_were_not_asked_for_are_named(answering, key: str) -> None:
    store = opened(await answering(always(lambda: xml(s3_page(["d/a", key])))))
    for call in (listed(store), store.children()):
        with pytest.raises(Corrupt, match=rf"lists what is not below s3://bucket/d \(the key '{key}'\)"):
            await call


async def test_keys_may_come_encoded(answering) -> None:
    keys = ["d/a b+c%20", "d/ü\x01", "d/plain"]

    async def answer(request: web.Request) -> web.Response:
        assert request.query["encoding-type"] == "url"
        body = s3_page([quote_plus(key, safe="/") for key in keys])
        return xml(body.replace("<IsT", "<EncodingType>url</EncodingType><IsT"))

    assert await listed(opened(await answering(answer))) == sorted(key[2:] for key in keys)


FOREIGN: dict[str, tuple[Handler, str]] = {
    "page": (
        lambda _: web.Response(text="<!doctype html><title>Console</title>", content_type="text/html"),
        r"HTTP 200, text/html; charset=utf-8: '<!doctype html><title>Console",
    ),
    "json": (
        lambda _: web.json_response({"authorization": "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"}),
        r"""HTTP 200, application/json; charset=utf-8: '{"authorization": "Bearer \\u2026"}'""",
    ),
    "empty": (lambda _: web.Response(), r"HTTP 200, no content type: an empty body"),
    "gzip": (
        lambda _: web.Response(
            body=gzip.compress(s3_page(["d/a"]).encode()),
            content_type="application/xml",
            headers={"Content-Encoding": "gzip"},
        ),
        r"HTTP 200, application/xml: Content-Encoding gzip, which was not requested; endpoint",
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
async def test_an_answer_that_is_none_of_s3_is_shown(answering, kind: str) -> None:
    handler, shown = FOREIGN[kind]
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request)
        return handler(request)

    endpoint = await answering(answer)
    store = opened(endpoint)
    for call in (lambda: listed(store), store.children, lambda: open_dataset(URI, config(endpoint))):
        asked.clear()
        with pytest.raises(InvalidSpec, match=shown) as caught:
            await call()
        assert "the endpoint of s3://bucket/d does not respond as an S3 service (HTTP" in str(caught.value)
        assert f"endpoint {endpoint}" in str(caught.value)
        assert "a console, a web page or a proxy" in str(caught.value)
        assert len(asked) == 1, "asking again cannot help"


async def test_a_redirection_to_a_login_is_shown_and_retried(answering) -> None:
    """It may be that of a service in maintenance."""
    headers = {"Location": "https://u:p@sso.test/login?token=secret"}
    answers = [web.Response(status=302, headers=headers) for _ in range(3)]
    bucket = ListedBucket(3)

    async def answer(request: web.Request) -> web.Response:
        return answers.pop() if answers else await bucket.answer(request)

    store = opened(await answering(answer))
    with pytest.raises(
        Unavailable, match=r"redirects to another .* \(HTTP 302, Location 'https://sso.test/login'"
    ):
        await listed(store)
    assert len(await listed(store)) == 3


async def test_a_listing_that_cannot_be_read_is_shown_and_asked_for_again(answering) -> None:
    cut = s3_page(["d/x"])[:-30]
    answers = [cut, cut, cut, s3_page(["d/x"])]
    store = opened(await answering(always(lambda: xml(answers.pop(0)))))
    with pytest.raises(
        Unavailable, match=r"of s3://bucket/d cannot be read \(HTTP 200.*ListBucketResult.*column"
    ):
        await listed(store)
    assert await listed(store) == ["x"], "the second attempt"


async def test_a_page_in_the_place_of_a_listing_is_an_outage_after_the_first_answer(answering) -> None:
    bucket, pages = ListedBucket(1500), [web.Response(text="<html>", content_type="text/html")]

    async def answer(request: web.Request) -> web.Response:
        if "continuation-token" in request.query and pages:
            return pages.pop()
        return await bucket.answer(request)

    store = opened(await answering(answer))
    assert len(await listed(store)) == 1500


async def test_a_page_in_the_place_of_the_rest_is_not_its_end(answering) -> None:
    bucket = ListedBucket(1500)

    async def answer(request: web.Request) -> web.Response:
        if bucket.asked:
            return web.Response(text="<html>", content_type="text/html")
        return await bucket.answer(request)

    with pytest.raises(Unavailable, match="does not respond as an S3 service"):
        await listed(opened(await answering(answer)))


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
