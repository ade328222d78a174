"""The contract on real servers."""

import asyncio
import gc
from pathlib import Path

import pytest

from podferry.contract.errors import AccessDenied, AlreadyExists, BucketNotFound, NotFound, Unavailable
from podferry.contract.uri import Uri
from podferry.storage.contract_suite.store import *  # noqa: F403
from podferry.storage.factory import open_store
from podferry.storage.network.settings import read_network
from podferry.storage.store import StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import Limits
from tests.support.real_servers import AZURITE_ACCOUNT, AZURITE_KEY

FSSPEC = (("engine", "fsspec"),)
LIMITS = Limits(retries=1, retry_seconds=5, part_bytes=5 << 20)
S3_KEYS = {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}
BOS_KEYS = {
    "BOS_ACCESS_KEY_ID": "key-of-tests",
    "BOS_SECRET_ACCESS_KEY": "secret-of-tests",
    "BOS_REGION": "gz",
}
AZURE_KEYS = {"AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY}
WRONG = {
    "s3": [{**S3_KEYS, "AWS_ACCESS_KEY_ID": "other"}, {**S3_KEYS, "AWS_SECRET_ACCESS_KEY": "other"}],
    "az": [{**AZURE_KEYS, "AZURE_STORAGE_ACCOUNT_KEY": "b3RoZXI="}],
}
FTP_LOGIN = {"FTP_USERNAME": "user", "FTP_PASSWORD": "password"}
SERVERS = {
    "versitygw, obstore": ("versitygw", Uri("s3", "bucket"), S3_KEYS),
    "minio, obstore": ("minio", Uri("s3", "bucket"), S3_KEYS),
    "minio, fsspec": ("minio", Uri("s3", "bucket", "", FSSPEC), S3_KEYS),
    "versitygw, bos": ("bos", Uri("bos", "bucket"), BOS_KEYS),
    "versitygw, fsspec": ("versitygw", Uri("s3", "bucket", "", FSSPEC), S3_KEYS),
    "azurite, obstore": ("azurite", Uri("az", "bucket"), AZURE_KEYS),
    "fake-gcs-server, fsspec": ("fake_gcs", Uri("gs", "bucket"), {"GOOGLE_SKIP_SIGNATURE": "true"}),
    "vsftpd, ftp": ("vsftpd", Uri("ftp", ""), FTP_LOGIN),
    "vsftpd explicit, ftps": ("vsftpd_explicit", Uri("ftps", ""), {**FTP_LOGIN, "FTP_TLS": "explicit"}),
    "vsftpd implicit, ftps": ("vsftpd_implicit", Uri("ftps", ""), {**FTP_LOGIN, "FTP_TLS": "implicit"}),
    "pyftpdlib, ftp": ("ftp", Uri("ftp", ""), FTP_LOGIN),
    "pyftpdlib without MLSD, ftp": ("ftp_without_mlsd", Uri("ftp", ""), FTP_LOGIN),
    "OpenSSH, sftp": ("sftp", Uri("sftp", ""), {}),
}
OBSTORE = ["versitygw, obstore", "azurite, obstore"]


def located(request, name, key, bucket="bucket", keys=None):
    """The URI of a key at a server, and how to reach it."""
    fixture, uri, held = SERVERS[name]
    server = request.getfixturevalue(fixture)
    if uri.scheme == "sftp":
        return Uri("sftp", server.address, f"srv/files/{key}"), StoreConfig(credentials=server.credentials)
    if uri.scheme == "ftps":
        address, certificate = server
        network = read_network({}, {"ca": certificate})
        return Uri("ftps", address, key), StoreConfig(credentials=held, network=network)
    is_host = uri.scheme == "ftp"
    uri = Uri(uri.scheme, server if is_host else bucket, key, uri.options)
    return uri, StoreConfig(endpoint=None if is_host else server, credentials=keys or held)


def opened(request, name, key, bucket="bucket", keys=None):
    return open_store(*located(request, name, key, bucket, keys), LIMITS)


@pytest.fixture(params=SERVERS)
async def store(request, fresh):
    store = opened(request, request.param, fresh)
    yield store
    await store.close()


async def test_listings_are_paged(store):
    count = 1103 if store.uri.scheme in ("s3", "az", "gs") and not store.uri.options else 101
    for start in range(0, count, 64):
        await asyncio.gather(*(store.write(f"p/{i:04}", b"x") for i in range(start, min(start + 64, count))))
    assert len([entry async for entry in store.entries()]) == count
    assert await store.children("p") == [f"{i:04}" for i in range(count)]
    await store.delete(f"p/{i:04}" for i in range(count))
    assert [entry async for entry in store.entries()] == []


@pytest.mark.parametrize("name", OBSTORE)
async def test_wrong_credentials_are_denied_and_not_printed(request, name, fresh):
    scheme = SERVERS[name][1].scheme
    for keys in WRONG[scheme]:
        store = opened(request, name, fresh, keys=keys)
        for call in (
            store.stat("a"),
            store.read("a"),
            store.write("a", b"x"),
            store.children(),
            store.delete(["a"]),
        ):
            with pytest.raises(AccessDenied) as caught:
                await call
            assert min(keys) in str(caught.value)
            assert not any(value in str(caught.value) for key, value in keys.items() if "KEY" in key)


@pytest.mark.parametrize("name", [name for name, server in SERVERS.items() if "ftp" not in server[0]])
async def test_a_missing_bucket_is_distinguished_from_a_missing_object(request, name, fresh):
    store = opened(request, name, fresh, "no-such-bucket")
    for call in (
        store.stat("a"),
        store.read("a"),
        store.write("a", b"x"),
        store.children(),
        store.delete(["a"]),
    ):
        with pytest.raises(BucketNotFound):
            await call
    await store.close()
    store = opened(request, name, fresh)
    with pytest.raises(NotFound) as caught:
        await store.stat("a")
    assert type(caught.value) is NotFound
    await store.close()


@pytest.mark.parametrize("name", OBSTORE)
async def test_a_refused_create_of_many_parts_overwrites_nothing(request, name, fresh):
    store = opened(request, name, fresh)
    await store.write("a", b"first")
    with pytest.raises((AlreadyExists, Unavailable)):
        await store.write("a", b"x" * (24 << 20), WriteMode.CREATE)
    assert bytes(await store.read("a")) == b"first"


@pytest.mark.parametrize("name", ["versitygw, fsspec", "fake-gcs-server, fsspec"])
async def test_a_closed_store_leaves_no_connection(request, name, fresh):
    async def used():
        store = opened(request, name, fresh)
        await store.write("a", b"x")
        await store.read("a")
        return store

    await (await used()).close()  # what fsspec opens once, for its loop
    before = sockets()
    for _ in range(5):
        await (await used()).close()
        assert sockets() == before
    gc.collect()  # each file system closes its session again


def sockets():
    """Those that this process holds."""
    return {
        found for link in Path("/proc/self/fd").iterdir() if (found := _target(link)).startswith("socket:")
    }


def _target(link):
    try:
        return str(link.readlink())
    except FileNotFoundError:  # that of the listing itself
        return ""
