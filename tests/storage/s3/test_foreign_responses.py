"""A server that does not respond to a listing as S3 does is named, with what it sent."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
from aiohttp import web

from podferry.contract.errors import Corrupt, InvalidSpec, Unavailable
from podferry.storage.listing.dataset import open_dataset
from tests.support.listed_s3 import URI, always, config, opened
from tests.support.listing_servers import ListedBucket, s3_page, xml
from tests.support.store_calls import listed

Handler = Callable[[web.Request], web.Response]


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


FOREIGN: dict[str, tuple[Handler, str]] = {
    "page": (
        lambda _: web.Response(text="<!doctype html><title>Console</title>", content_type="text/html"),
        r"HTTP 200, text/html; charset=utf-8: '<!doctype html><title>Console",
    ),
    "page of a web server": (
        lambda _: web.Response(status=404, text="<html>404 Not Found</html>", content_type="text/html"),
        r"HTTP 404, text/html; charset=utf-8: '<html>404 Not Found",
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
