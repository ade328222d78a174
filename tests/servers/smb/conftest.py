"""One Samba for all tests of SMB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from tests.support.samba import Samba, samba
from tests.support.smb_share import CONFIG, QUICK


@pytest.fixture(scope="session")
def server(folders) -> Iterator[Samba]:
    files = folders.mktemp("share")
    files.chmod(0o755)
    with samba(files, folders.mktemp("samba")) as found:
        yield found


@pytest.fixture
async def store(server: Samba, fresh):
    store = open_store(Uri("smb", server.address, f"share/{fresh}"), CONFIG, QUICK)
    yield store
    await store.close()


@pytest.fixture
def folder(server: Samba, fresh) -> Path:
    """A folder of the share."""
    found = server.files / fresh
    found.mkdir(parents=True)
    return found
