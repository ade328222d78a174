"""The region of a bucket, as S3 states it."""

import pytest
from aiohttp import web

from podferry.contract.uri import parse_uri
from podferry.storage.s3.bucket_region import bucket_region
from podferry.storage.s3.endpoint import s3_access
from podferry.storage.store import StoreConfig
from tests.support.store_calls import KEYS


@pytest.mark.parametrize("status", [200, 301, 400, 403])
async def test_every_answer_states_it(answering, quick, status):
    seen = []

    async def answer(request):
        seen.append((request.method, request.path, request.headers.get("Authorization")))
        return web.Response(status=status, headers={"x-amz-bucket-region": "eu-west-1"})

    access = s3_access(parse_uri("s3://bucket/x"), StoreConfig(await answering(answer), credentials=KEYS))
    assert await bucket_region(access, quick) == "eu-west-1"
    assert seen == [("HEAD", "/bucket", None)]


async def test_a_service_that_does_not_state_it(answering, quick):
    async def answer(request):
        return web.Response(status=404)

    for endpoint in (await answering(answer), "http://127.0.0.1:1"):
        access = s3_access(parse_uri("s3://bucket/x"), StoreConfig(endpoint, credentials=KEYS))
        assert await bucket_region(access, quick) == ""
