"""A directory of a bucket of S3, at a server that a test starts."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.patience import PATIENCE
from tests.support.store_calls import KEYS

PATIENT = Limits(connect_seconds=PATIENCE, stall_seconds=PATIENCE, request_seconds=PATIENCE, retries=1)
URI = parse_uri("s3://bucket/d")


def config(endpoint: str) -> StoreConfig:
    return StoreConfig(endpoint=endpoint, credentials=KEYS)


def opened(endpoint: str) -> Store:
    return open_store(URI, config(endpoint), PATIENT)


def always(response: Callable[[], web.Response]) -> Callable[[web.Request], object]:
    """A server with one answer."""

    async def answer(request: web.Request) -> web.Response:
        return response()

    return answer
