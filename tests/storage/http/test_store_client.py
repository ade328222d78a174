"""The client of S3 and Azure; tests/storage/s3/test_client.py has its timeouts and retries."""

import pytest
from aiohttp import web

from podferry.contract.errors import AccessDenied, Unavailable
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.http.plain_session import MAX_RESPONSE_BYTES
from podferry.storage.http.store_client import (
    StoreClient,
    StoreRequest,
    StoreResponseError,
    error_response,
)
from podferry.storage.network.settings import DIRECT


class Refused(StoreResponseError):
    def __init__(self, status):
        super().__init__(status)
        self.status = status


class Plain(StoreClient):
    """Signs with a header, and refuses what is no success."""

    def _signed(self, request, url):
        return url + "?signed", {**request.headers, "Signature": "s"}

    def _encoded_query(self, query):
        return "&".join(f"{name}={value}" for name, value in query.items())

    def _checked(self, response):
        if response.status >= 300:
            raise Refused(response.status)
        return response


@pytest.fixture
async def client(answering, quick):
    clients, statuses, seen = [], [], []

    async def answer(request):
        seen.append((request.raw_path, request.headers.get("Signature"), await request.read()))
        status = statuses.pop(0) if statuses else 200
        return web.Response(status=status, body=b"x" * (MAX_RESPONSE_BYTES + 10))

    url = await answering(answer)
    location = StoreLocation(Uri("s3", "bucket", "run"), url)
    clients.append(Plain(f"{url}/bucket", location, DIRECT, quick, None))
    yield clients[0], statuses, seen
    await clients[0].close()


async def test_requests_are_signed_and_responses_bounded(client):
    plain, _, seen = client
    response = await plain.send(StoreRequest("PUT", "a b", body=memoryview(b"body")))
    assert len(response.text) == MAX_RESPONSE_BYTES
    assert seen == [("/bucket/run/a%20b?signed", "s", b"body")]


async def test_errors_decide_whether_a_request_is_sent_again(client):
    plain, statuses, seen = client
    statuses += [503, 200]
    await plain.send(StoreRequest("GET", "a"))
    assert len(seen) == 2
    statuses += [403, 200]
    with pytest.raises(AccessDenied) as caught:
        await plain.send(StoreRequest("GET", "a"))
    assert len(seen) == 3
    assert error_response(caught.value).status == 403
    statuses[:] = [503, 503]
    with pytest.raises(Unavailable):
        await plain.send(StoreRequest("GET", "a", attempts=1))
    assert len(seen) == 4
