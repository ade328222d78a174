"""Syncs between real servers: equal afterwards, nothing moves twice, only edits move."""

import pytest

from podferry.contract.dataset_reference import Reference
from podferry.contract.uri import Uri
from podferry.sidecar.sync.comparison import SyncOptions
from podferry.sidecar.sync.sync import Sync
from podferry.storage.factory import open_store
from podferry.storage.listing.by_directory import list_entries
from podferry.storage.store import StoreConfig
from tests.servers.test_servers import located

FILES = {"a": b"1", "d/b c": b"22", "d/e/ü": b"x" * 3500, "empty": b"", "big": b"b" * (9 << 20)}
VERSITY, AZURITE = "versitygw, obstore", "azurite, obstore"
GCS, SFTP, FTP = "fake-gcs-server, fsspec", "OpenSSH, sftp", "vsftpd, ftp"
WAYS = [
    ("file", VERSITY),
    (VERSITY, VERSITY),
    (VERSITY, AZURITE),
    (AZURITE, VERSITY),
    (AZURITE, "file"),
    (VERSITY, GCS),
    (GCS, GCS),
    (GCS, VERSITY),
    (VERSITY, SFTP),
    (SFTP, AZURITE),
    (FTP, VERSITY),
    (VERSITY, FTP),
]


@pytest.fixture
def place(request, fresh, tmp_path):
    """The URI and the configuration of a folder at a server, or of a directory."""

    def at(name, folder):
        if name == "file":
            (tmp_path / folder).mkdir(exist_ok=True)
            return Uri("file", "", f"{tmp_path}/{folder}".strip("/")), StoreConfig()
        return located(request, name, f"{fresh}/{folder}")

    return at


async def change(place, files, gone=()):
    store = open_store(*place)
    for name, data in files.items():
        await store.write(name, data)
    await store.delete(gone)
    await store.close()


async def held(place):
    store = open_store(*place)
    try:
        return {entry.name: bytes(await store.read(entry.name)) for entry in await list_entries(store)}
    finally:
        await store.close()


@pytest.mark.parametrize(("source_name", "target_name"), WAYS, ids=" to ".join)
async def test_only_what_differs_is_moved(place, source_name, target_name):
    source, target = place(source_name, "source"), place(target_name, "copy")
    await change(source, FILES)

    async def sync():
        return await Sync(
            Reference(source[0]), target[0], source[1], target[1], SyncOptions(delete=True)
        ).run()

    assert len((await sync()).moved) == 5
    assert await held(target) == FILES
    again = await sync()
    assert (again.moved, again.kept, again.removed) == ([], 5, ())
    await change(source, {"a": b"other"}, ["empty"])
    found = await sync()
    assert (found.moved, found.removed) == (["a"], ("empty",))
    assert await held(target) == await held(source)
