import pytest

from podferry.contract.uri import parse_uri
from podferry.storage.doctor.address import address_of
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.declared import KEYS


@pytest.mark.parametrize(
    ("uri", "endpoint", "place"),
    [
        ("s3://b/x", "http://store:9000", ("store", 9000, False)),
        ("s3://b/x", "https://[2001:db8::1]", ("2001:db8::1", 443, True)),
        ("https://user.example/x", None, ("user.example", 443, True)),
        ("sftp://me@host/x", None, ("host", 22, False)),
        ("sftp://me@[2001:db8::1]:2222/x", None, ("2001:db8::1", 2222, False)),
        ("ftp://host:80/x", None, ("host", 80, False)),
        ("hdfs://name-node:9000/x", None, ("name-node", 9000, False)),
        ("hdfs://nameservice/x", None, None),
        ("hf://datasets/a/b", None, ("huggingface.co", 443, True)),
        ("hf://datasets/a/b", "http://mirror:81", ("mirror", 81, False)),
        ("memory://b/x", None, None),
        ("file:///x", None, None),
    ],
)
async def test_where_the_server_is(uri, endpoint, place):
    parsed, config = parse_uri(uri), StoreConfig(endpoint=endpoint, credentials=KEYS)
    store = open_store(parsed, config)
    found = address_of(store, parsed, config)
    await store.close()
    assert (found and (found.origin.host, found.origin.port, found.origin.tls)) == place


@pytest.mark.parametrize(
    ("scheme", "words"),
    [("sftp", "SSH"), ("ssh", "SSH"), ("ftps", "engine"), ("ftp", ""), ("smb", "SMB signs")],
)
async def test_who_encrypts_without_tls_from_the_first_byte_is_told(scheme, words):
    parsed, config = parse_uri(f"{scheme}://me@host/x"), StoreConfig(credentials=KEYS)
    store = open_store(parsed, config)
    found = address_of(store, parsed, config)
    await store.close()
    assert found is not None
    assert words in found.encryption
    assert bool(words) == bool(found.encryption)
