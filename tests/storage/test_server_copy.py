"""The contract of copies on every store that has them and needs no real server."""

import pytest

from podferry.contract.errors import Corrupt
from podferry.contract.uri import Uri, parse_uri
from podferry.storage.checksum.checksums import ChecksumKind, checksum_of
from podferry.storage.contract_suite.server_copy import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.server_copy import StoredObject, checked_copy
from podferry.storage.store import StoreConfig


@pytest.fixture(params=["memory", "local", "obstore s3"])
async def store(request, fresh, tmp_path, quick):
    if request.param == "obstore s3":
        store = open_store(Uri("s3", "bucket", fresh), request.getfixturevalue("config"), quick)
    elif request.param == "local":
        store = open_store(Uri("file", "", f"{tmp_path}/{fresh}".strip("/")))
    else:
        store = open_store(Uri("memory", "copies", fresh))
    yield store
    await store.close()


@pytest.mark.parametrize("uri", ["az://c/k", "memory://m?engine=fsspec", "s3://b?engine=fsspec"])
def test_other_stores_have_no_copies(uri):
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_ACCOUNT_NAME")
    config = StoreConfig(credentials={**dict.fromkeys(keys, "k"), "AZURE_STORAGE_ACCOUNT_KEY": "aw=="})
    assert open_store(parse_uri(uri), config).server_copy is None


def stored(data, kind=None):
    return StoredObject(len(data), kind and checksum_of(kind, data))


@pytest.mark.parametrize(
    ("source", "target", "wrong"),
    [
        (stored(b"1"), stored(b"1"), None),
        (stored(b"1"), stored(b"12"), "2 bytes, the source has 1"),
        (stored(b"1", ChecksumKind.MD5), stored(b"2", ChecksumKind.MD5), "md5 c81e"),
        (stored(b"1", ChecksumKind.MD5), stored(b"1", ChecksumKind.MD5), None),
        (stored(b"1", ChecksumKind.CRC32C), stored(b"1", ChecksumKind.MD5), None),
        (stored(b"1", ChecksumKind.MD5), stored(b"1"), None),
    ],
)
def test_a_copy_is_compared_with_its_source(source, target, wrong):
    if wrong is None:
        assert checked_copy(parse_uri("s3://b/a"), source, target) is target
        return
    with pytest.raises(Corrupt, match=wrong):
        checked_copy(parse_uri("s3://b/a"), source, target)
