import sys

import fsspec
import pytest
from fsspec.registry import known_implementations

from podferry.contract.errors import CredentialsMissing, InvalidSpec, UnknownScheme
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.fsspec import install_hints as schemes
from podferry.storage.fsspec.store import FsspecStore
from podferry.storage.local.store import LocalStore
from podferry.storage.memory.store import MemoryStore
from podferry.storage.obstore.store import ObstoreStore
from podferry.storage.store import StoreConfig

REGISTRY = sys.modules["fsspec.registry"]
"""The module; `fsspec.registry` is a table in it."""
S3 = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
AZURE = {"AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_STORAGE_ACCOUNT_KEY": "c2VjcmV0"}


@pytest.mark.parametrize(
    ("uri", "engine"),
    [
        ("s3://b/x", ObstoreStore),
        ("s3a://b/x", ObstoreStore),
        ("bos://b/x", ObstoreStore),
        ("az://c/x", ObstoreStore),
        ("s3://b/x?engine=obstore", ObstoreStore),
        ("s3://b/x?engine=fsspec", FsspecStore),
        ("http://host/x", FsspecStore),
        ("ftp://host/x", FsspecStore),
        ("/tmp/x", LocalStore),
        ("file:///tmp/x?engine=fsspec", FsspecStore),
        ("memory://m/x", MemoryStore),
        ("memory://m/x?engine=fsspec", FsspecStore),
    ],
)
def test_the_engine_of_a_uri(uri, engine):
    store = open_store(parse_uri(uri), StoreConfig(credentials={**S3, **AZURE}))
    assert type(store) is engine
    assert store.uri == parse_uri(uri)


@pytest.mark.parametrize(
    ("scheme", "meant"), [("s4", "s3"), ("gcp", "gcs"), ("fiel", "file"), ("htps", "https")]
)
def test_a_mistyped_scheme_gets_a_suggestion(scheme, meant):
    with pytest.raises(UnknownScheme, match=f"Did you mean '{meant}'"):
        open_store(parse_uri(f"{scheme}://b/x"))


def test_an_unknown_scheme_gets_the_list_of_known_ones():
    with pytest.raises(UnknownScheme, match=r"Known schemes: .*s3"):
        open_store(parse_uri("quux-quux-quux://b/x"))


@pytest.mark.parametrize("scheme", schemes.EXTRAS)
def test_a_missing_package_gets_its_install_command(scheme, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(REGISTRY, "get_filesystem_class", missing)
    extra = schemes.EXTRAS[scheme]
    with pytest.raises(UnknownScheme, match=rf"pip install 'podferry\[{extra}\]'"):
        open_store(parse_uri(f"{scheme}://b/x?engine=fsspec"))


async def test_a_package_missing_at_the_first_call_gets_its_install_command(monkeypatch):
    def missing(*_, **__):
        raise ImportError("pyarrow")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    store = open_store(parse_uri("hdfs://name/x"))
    with pytest.raises(UnknownScheme, match=r"pip install 'podferry\[hdfs\]'"):
        await store.stat("y")
    await store.close()


def test_every_scheme_that_fsspec_knows_opens_or_gets_a_remedy(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(REGISTRY, "get_filesystem_class", missing)
    for scheme in known_implementations:
        if scheme.isascii() and "_" not in scheme and scheme not in ("file", "local"):
            with pytest.raises(UnknownScheme) as caught:
                open_store(parse_uri(f"{scheme}://b/x?engine=fsspec"))
            assert caught.value.problems[0].remedy


def test_obstore_opens_only_its_own_schemes():
    with pytest.raises(InvalidSpec, match="obstore does not open ftp"):
        open_store(parse_uri("ftp://h/x?engine=obstore"))


@pytest.mark.parametrize("endpoint", ["127.0.0.1:9000", "ftp://host", "minio"])
def test_an_endpoint_is_a_url(endpoint):
    with pytest.raises(InvalidSpec, match="an endpoint must be a URL"):
        open_store(parse_uri("s3://b/x"), StoreConfig(endpoint=endpoint, credentials=S3))


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ({}, "no storage account is configured"),
        ({"AZURE_STORAGE_ACCOUNT_NAME": "a"}, "there are no credentials"),
        ({"AZURE_STORAGE_CONNECTION_STRING": "AccountName=a"}, "there are no credentials"),
    ],
)
def test_azure_says_what_is_missing(held, expected):
    with pytest.raises(CredentialsMissing, match=expected):
        open_store(parse_uri("az://c/x"), StoreConfig(credentials=held))


@pytest.mark.parametrize(
    "held",
    [
        AZURE,
        {
            "AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;AccountKey=c2VjcmV0;BlobEndpoint=http://127.0.0.1:1/a"
        },
        {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=2"},
        {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_SKIP_SIGNATURE": "true"},
    ],
)
def test_azure_accepts_each_form_of_credentials(held):
    assert type(open_store(parse_uri("az://c/x"), StoreConfig(credentials=held))) is ObstoreStore


def test_stores_print_no_credentials():
    for uri in ("s3://b/x", "s3://b/x?engine=fsspec"):
        config = StoreConfig(credentials={"AWS_ACCESS_KEY_ID": "kkkk", "AWS_SECRET_ACCESS_KEY": "ssss"})
        store = open_store(parse_uri(uri), config)
        printed = repr(store) + repr(vars(store))
        assert "kkkk" not in printed
        assert "ssss" not in printed
