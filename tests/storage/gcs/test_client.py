import pytest
from aiohttp import web

from podferry.contract.errors import BucketNotFound, InvalidSpec, NotFound
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.gcs.client import GcsClient
from podferry.storage.network.settings import DIRECT


@pytest.fixture
async def client(answering, quick):
    seen, responses = [], []

    async def answer(request):
        seen.append(
            (request.method, request.raw_path, request.headers.get("Authorization"), await request.read())
        )
        status, body = responses.pop(0) if responses else (200, {})
        return web.json_response(body, status=status)

    url = await answering(answer)
    location = StoreLocation(Uri("gs", "bucket", "run 1"), url)
    made = GcsClient(url, location, DIRECT, quick, lambda: {"Authorization": "Bearer t"})
    yield made, responses, seen
    await made.close()


async def test_keys_are_encoded_and_requests_have_the_token(client):
    gcs, _, seen = client
    await gcs.metadata("a/b?")
    await gcs.insert("c#", b"body")
    await gcs.compose([("a", "1"), ("b", "2")], "t", {"k": "v"})
    paths = [path for _, path, _, _ in seen]
    assert paths[0] == "/storage/v1/b/bucket/o/run%201%2Fa%2Fb%3F"
    assert paths[1] == "/upload/storage/v1/b/bucket/o?uploadType=media&name=run%201%2Fc%23"
    assert paths[2] == "/storage/v1/b/bucket/o/run%201%2Ft/compose"
    assert {token for _, _, token, _ in seen} == {"Bearer t"}
    assert seen[1][3] == b"body"
    assert b'"generation":"2"' in seen[2][3]


async def test_pages_of_a_listing_are_followed(client):
    gcs, responses, seen = client
    responses += [(200, {"items": [{"name": "a"}], "nextPageToken": "x"}), (200, {"items": [{"name": "b"}]})]
    assert [item["name"] for item in await gcs.listed("p")] == ["a", "b"]
    assert "pageToken=x" in seen[1][1]


async def test_errors_name_the_object_or_the_bucket(client):
    gcs, responses, _ = client
    responses += [(404, {}), (404, {})]
    with pytest.raises(NotFound, match="gs://bucket/run 1/a/b") as caught:
        await gcs.metadata("a/b")
    assert type(caught.value) is NotFound
    with pytest.raises(BucketNotFound, match="gs://bucket/"):
        await gcs.insert("a", b"x")


async def test_a_web_page_is_not_a_missing_bucket(answering, quick):
    async def page(request):
        return web.Response(status=404, text="<html>Not Found", content_type="text/html")

    location = StoreLocation(Uri("gs", "bucket", "x"), url := await answering(page))
    made = GcsClient(url, location, DIRECT, quick, dict)
    with pytest.raises(InvalidSpec, match=r"does not respond as Google Cloud Storage \(HTTP 404, text/html"):
        await made.listed("")
    await made.close()
