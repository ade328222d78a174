"""A directory of an SFTP server, and stores that open it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podferry.contract.errors import (
    FerryError,
)
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits

LIMITS = Limits(retries=2, retry_seconds=20, stall_seconds=10)


class SftpSite:
    """A directory at a server.

    Attributes:
        server: See `tests.support.openssh.Sshd`.
        folder: The same directory here.
        path: Its path at the server.
    """

    def __init__(self, server: Any, files: Path) -> None:
        self.server = server
        self.folder = files / f"d{len(list(files.iterdir()))}"
        self.path = f"srv/files/{self.folder.name}"
        self.folder.mkdir()
        os.chown(self.folder, files.stat().st_uid, -1)

    @asynccontextmanager
    async def opened(
        self, path: str = "", address: str = "", limits: Limits = LIMITS, **variables: str
    ) -> AsyncIterator[Store]:
        store = self.store(path, address, limits, **variables)
        try:
            yield store
        finally:
            await store.close()

    def store(self, path: str = "", address: str = "", limits: Limits = LIMITS, **variables: str) -> Store:
        uri = parse_uri(f"sftp://{address or self.server.address}/{path or self.path}")
        found = {**self.server.credentials, **variables}
        credentials = {name: value for name, value in found.items() if value}
        return open_store(uri, StoreConfig(credentials=credentials), limits)

    async def fails(self, error: type[FerryError], words: str, path: str = "", **variables: str) -> None:
        with pytest.raises(error, match=words) as caught:
            async with self.opened(path, **variables) as store:
                await store.children()
        assert "password" not in str(caught.value).replace("SFTP_PASSWORD", "").replace("a password", "") or (
            "its password" in str(caught.value)
        )

    @property
    def host(self) -> str:
        """How the server's line of known hosts begins."""
        return str(self.server.known_hosts.split()[0])

    def write_one(self) -> None:
        """Put a file of five bytes there."""
        (self.folder / "a").write_bytes(b"12345")


async def names(store: Store) -> list[str]:
    """All of a store."""
    return sorted([entry.name async for entry in store.entries()])
