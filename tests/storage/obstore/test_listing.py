"""Listings through obstore: of Azure, and of S3 with credentials that only obstore finds."""

from __future__ import annotations

import asyncio
import importlib

import msgspec
import pytest
from aiohttp import web

from podferry.contract.errors import Corrupt, FerryError, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.obstore import listing
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.listing_servers import ListedBucket, azure_page, s3_page, xml
from tests.support.patience import PATIENCE
from tests.support.store_calls import KEYS, listed

PATIENT = Limits(
    connect_seconds=PATIENCE, stall_seconds=PATIENCE, request_seconds=PATIENCE, retries=1, retry_seconds=1
)
IMPATIENT = msgspec.structs.replace(PATIENT, stall_seconds=1, request_seconds=1)
AZURE_KEYS = {"AZURE_STORAGE_ACCOUNT_NAME": "k", "AZURE_STORAGE_ACCOUNT_KEY": "b3RoZXI="}


@pytest.fixture(autouse=True)
def no_requests_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("podferry.storage.s3.listing")
    monkeypatch.setattr(module, "credentials_provider", lambda access: None)


def opened(endpoint: str, limits: Limits = PATIENT) -> Store:
    return open_store(parse_uri("s3://bucket/d"), StoreConfig(endpoint=endpoint, credentials=KEYS), limits)


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 3000])
async def test_a_listing_is_complete_and_costs_one_more_request(answering, count: int) -> None:
    bucket = ListedBucket(count)
    store = opened(await answering(bucket.answer))
    assert len(await listed(store)) == count
    assert len(bucket.asked) == max(1, -(-count // 1000)) + (count > 0)


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_server_that_does_not_say_where_more_is_is_listed_behind_the_last_name(
    answering, size: int
) -> None:
    store = opened(await answering(ListedBucket(2 * size + 1, page_objects=size, tokens=False).answer))
    assert len(await listed(store)) == 2 * size + 1
    with pytest.raises(Corrupt, match=rf"does not list all of s3://bucket/d \(no way behind {size:,} names"):
        await store.children()


@pytest.mark.parametrize("size", [7, 1000])
async def test_a_server_that_knows_no_way_to_the_rest_is_named(answering, size: int) -> None:
    bucket = ListedBucket(2 * size + 1, page_objects=size, tokens=False, start_after=False)
    store = opened(await answering(bucket.answer))
    for call in (listed(store), store.children()):
        with pytest.raises(Corrupt, match=rf"list all of s3://bucket/d \(no way behind {size:,} names"):
            await call


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_a_page_that_comes_again_is_named(answering, size: int) -> None:
    names = [f"d/{number:05}" for number in range(size)]

    async def again(request: web.Request) -> web.Response:
        return xml(s3_page(names, more=True, token="next"))

    with pytest.raises(Corrupt, match=r"the listing of s3://bucket/d has no end .*a page begins with 'd/000"):
        await listed(opened(await answering(again)))


async def test_more_objects_than_can_be_real_are_named(answering, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing.CompleteListing.__init__, "__defaults__", (1500,))
    with pytest.raises(Corrupt, match="no end"):
        await listed(opened(await answering(ListedBucket(2500).answer)))


async def test_empty_pages_without_end_are_no_answer(answering) -> None:
    async def empty(request: web.Request) -> web.Response:
        await asyncio.sleep(0.01)
        return xml(s3_page([], more=True, token="next"))

    store = opened(await answering(empty), IMPATIENT)
    for call in (listed(store), store.children()):
        with pytest.raises(Unavailable, match="no response in time"):
            await call


@pytest.mark.parametrize("key", ["other/a.txt", "dd/a"])
async def test_keys_that_were_not_asked_for_are_named(answering, key: str) -> None:
    async def s3(request: web.Request) -> web.Response:
        return xml(s3_page(["d/a", key]))

    async def azure(request: web.Request) -> web.Response:
        return xml(azure_page(["d/a", key]))

    account = StoreConfig(endpoint=f"{await answering(azure)}/k", credentials=AZURE_KEYS)
    stores = [opened(await answering(s3)), open_store(parse_uri("az://bucket/d"), account, PATIENT)]
    for store in stores:
        for call in (listed(store), store.children()):
            with pytest.raises(Corrupt, match=rf"lists what is not below .*://bucket/d \(the key '{key}'\)"):
                await call


async def test_a_later_page_of_azure_that_is_missing_is_no_missing_dataset(answering) -> None:
    async def answer(request: web.Request) -> web.Response:
        if "marker" in request.query:
            return web.Response(status=404)
        return xml(azure_page([f"d/{number:05}" for number in range(1000)], marker="next"))

    account = StoreConfig(endpoint=f"{await answering(answer)}/k", credentials=AZURE_KEYS)
    with pytest.raises(
        Unavailable, match=r"the listing of az://bucket/d breaks off \(the page behind 1,000 "
    ):
        await listed(open_store(parse_uri("az://bucket/d"), account, PATIENT))


@pytest.mark.parametrize(
    "body", ["", "{}", azure_page(["d/a"])[:-40], azure_page(["d/a"]).replace(">1<", ">-5<")]
)
async def test_a_listing_of_azure_that_cannot_be_read_is_named(answering, body: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return xml(body)

    account = StoreConfig(endpoint=f"{await answering(answer)}/k", credentials=AZURE_KEYS)
    store = open_store(parse_uri("az://bucket/d"), account, PATIENT)
    with pytest.raises(Unavailable, match="listing of az://bucket/d cannot be read"):
        await listed(store)


@pytest.mark.parametrize("status", [500, 503, 403, 404])
async def test_a_page_that_cannot_be_listed_is_an_error(answering, status: int) -> None:
    bucket = ListedBucket(1500)

    async def answer(request: web.Request) -> web.Response:
        if "continuation-token" not in request.query:
            return await bucket.answer(request)
        return web.Response(status=status, text="<Error><Code>Mine</Code></Error>")

    with pytest.raises(FerryError):
        await listed(opened(await answering(answer)))


class Cut:
    """Lists two pages, and cuts the responses that `cuts` names by their number."""

    def __init__(self, cuts: set[int], names: list[str]) -> None:
        self.cuts, self.names, self.requests = cuts, names, 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        after = request.query.get("marker", "")
        page = [name for name in self.names if name > after][:2]
        text = azure_page(page, marker=page[-1] if page[-1] != self.names[-1] else "")
        number, self.requests = self.requests, self.requests + 1
        if number not in self.cuts:
            return xml(text)
        response = web.StreamResponse(headers={"Content-Length": str(len(text)), "Content-Type": "text/xml"})
        await response.prepare(request)
        await response.write(text.encode()[: len(text) // 2])
        assert request.transport is not None
        request.transport.abort()
        return response


async def azure_names(answering, cut: Cut) -> list[str]:
    config = StoreConfig(endpoint=f"{await answering(cut.answer)}/k", credentials=AZURE_KEYS)
    store = open_store(parse_uri("az://bucket/d?engine=obstore"), config)
    try:
        return [entry.name async for entry in store.entries()]
    finally:
        await store.close()


@pytest.mark.parametrize("cuts", [{0}, {1}, {0, 2}, {1, 3}])
async def test_a_listing_of_azure_that_is_cut_is_read_again(answering, cuts: set[int]) -> None:
    names = ["d/a", "d/b", "d/c", "d/d", "d/e"]
    assert await azure_names(answering, Cut(cuts, names)) == ["a", "b", "c", "d", "e"]


async def test_a_listing_that_is_cut_for_ever_is_an_error(answering) -> None:
    with pytest.raises(Unavailable):
        await azure_names(answering, Cut(set(range(1000)), ["d/a", "d/b", "d/c"]))
