"""Multipart uploads, on every store that needs no real server."""

import pytest

from podferry.contract.errors import NotFound, Unavailable
from podferry.contract.uri import Uri
from podferry.storage.contract_suite.multipart import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.multipart import part_bytes_for

KINDS = {"memory": 1000, "local": 4096, "s3": 5 << 20}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def part(kind):
    return KINDS[kind]


@pytest.fixture
def unknown(kind):
    """For a removed upload moto only returns HTTP 500; tests/servers uses a real server."""
    return (NotFound, Unavailable) if kind == "s3" else NotFound


@pytest.fixture
async def reopen(request, kind, fresh, tmp_path, quick):
    uris = {
        "memory": Uri("memory", "parts", fresh),
        "local": Uri("file", "", f"{tmp_path}/{fresh}".strip("/")),
        "s3": Uri("s3", "bucket", fresh),
    }
    config = (request.getfixturevalue("config"),) if kind == "s3" else ()
    stores = []

    def reopen():
        stores.append(open_store(uris[kind], *config, limits=quick))
        return stores[-1]

    yield reopen
    for store in stores:
        await store.close()


def test_stores_without_multipart_uploads_have_none(tmp_path):
    for uri in (Uri("memory", "m", "", (("engine", "fsspec"),)), Uri("http", "127.0.0.1:1")):
        assert open_store(uri).multipart is None


@pytest.mark.parametrize(
    ("size", "preferred", "expected"),
    [
        (1, 16, 16),
        (10_000 * 16, 16, 16),
        (10_000 * 16 + 1, 16, 17),
        (1 << 40, 16 << 20, -(-(1 << 40) // 10_000)),
    ],
)
def test_large_objects_get_larger_parts(size, preferred, expected):
    parts = open_store(Uri("memory", "m")).multipart
    assert part_bytes_for(size, preferred, parts) == expected
    assert -(-size // expected) <= parts.max_parts
