"""The contract on every store that needs no real server."""

import pytest

from podferry.contract.uri import Uri
from podferry.storage.contract_suite.store import *  # noqa: F403
from podferry.storage.factory import open_store

FSSPEC = (("engine", "fsspec"),)


def uri_of(kind, fresh, tmp_path):
    uris = {
        "memory": Uri("memory", "m", fresh),
        "local": Uri("file", "", f"{tmp_path}/{fresh}".strip("/")),
        "fsspec memory": Uri("memory", "m", fresh, FSSPEC),
        "fsspec file": Uri("file", "", f"{tmp_path}/{fresh}".strip("/"), FSSPEC),
        "obstore s3": Uri("s3", "bucket", fresh),
        "fsspec s3": Uri("s3", "bucket", fresh, FSSPEC),
    }
    return uris[kind]


KINDS = ["memory", "local", "fsspec memory", "fsspec file", "obstore s3", "fsspec s3"]


@pytest.fixture(params=KINDS)
async def store(request, fresh, tmp_path, quick):
    uri = uri_of(request.param, fresh, tmp_path)
    config = request.getfixturevalue("config") if uri.scheme == "s3" else None
    store = open_store(uri, config, quick) if config else open_store(uri, limits=quick)
    yield store
    await store.close()


def test_every_engine_is_here():
    assert {kind.split()[0] for kind in KINDS} == {"memory", "local", "fsspec", "obstore"}
