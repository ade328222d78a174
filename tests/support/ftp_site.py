"""A folder behind vsftpd, and stores that open it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.network.settings import read_network
from podferry.storage.store import Store, StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.vsftpd import vsftpd

LOGIN = {"FTP_USERNAME": "user", "FTP_PASSWORD": "password"}
LIMITS = Limits(retries=2, retry_seconds=20, stall_seconds=10)


class Site:
    """A folder behind vsftpd.

    Attributes:
        folder: The server's root.
        address: `host:port`.
    """

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address

    @asynccontextmanager
    async def opened(self, path: str = "", scheme: str = "ftp", **variables: str) -> AsyncIterator[Store]:
        store = self.store(path, scheme, **variables)
        try:
            yield store
        finally:
            await store.close()

    def store(self, path: str = "", scheme: str = "ftp", **variables: str) -> Store:
        return open_store(parse_uri(f"{scheme}://{self.address}/{path}"), config(**variables), LIMITS)


def config(certificate: str = "", **variables: str) -> StoreConfig:
    network = read_network({}, {"ca": certificate} if certificate else {})
    return StoreConfig(credentials={**LOGIN, **variables}, network=network)


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Site]:
    """vsftpd with a folder of its own."""
    (folder / "files").mkdir()
    (folder / "server").mkdir()
    with vsftpd(folder / "files", folder / "server", *options) as address:
        yield Site(folder / "files", address)
