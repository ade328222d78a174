import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.fsspec.store import FsspecStore
from podferry.storage.ftp.store import FtpStore
from podferry.storage.local.store import LocalStore
from podferry.storage.memory.store import MemoryStore
from podferry.storage.obstore.store import ObstoreStore
from podferry.storage.store import StoreConfig
from podferry.storage.web.store import WebStore

S3 = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
BOS = {"BOS_ACCESS_KEY_ID": "k", "BOS_SECRET_ACCESS_KEY": "s"}
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
        ("s3a://b/x?engine=fsspec", FsspecStore),
        ("http://host/x", WebStore),
        ("http://host/x?engine=web", WebStore),
        ("ftp://host/x", FtpStore),
        ("/tmp/x", LocalStore),
        ("file:///tmp/x?engine=fsspec", FsspecStore),
        ("memory://m/x", MemoryStore),
        ("memory://m/x?engine=fsspec", FsspecStore),
    ],
)
def test_the_engine_of_a_uri(uri, engine):
    store = open_store(parse_uri(uri), StoreConfig(credentials={**S3, **BOS, **AZURE}))
    assert type(store) is engine
    assert store.uri == parse_uri(uri)


@pytest.mark.parametrize(
    ("scheme", "engine"),
    [
        ("ftp", "obstore"),
        *((scheme, "fsspec") for scheme in ("bos", "oss", "hdfs", "webhdfs", "sftp", "smb", "http", "hf")),
        ("s3", "hdfs"),
        ("gs", "memory"),
    ],
)
def test_an_engine_opens_only_its_own_schemes(scheme, engine):
    with pytest.raises(
        InvalidSpec, match=rf"{engine} does not open {scheme}://.*Leave \?engine={engine} out"
    ):
        open_store(parse_uri(f"{scheme}://h/x?engine={engine}"))


def test_stores_print_no_credentials():
    for uri in ("s3://b/x", "s3://b/x?engine=fsspec"):
        config = StoreConfig(credentials={"AWS_ACCESS_KEY_ID": "kkkk", "AWS_SECRET_ACCESS_KEY": "ssss"})
        store = open_store(parse_uri(uri), config)
        printed = repr(store) + repr(vars(store))
        assert "kkkk" not in printed
        assert "ssss" not in printed
