"""Directories of SFTP servers as stores: `sftp://host/directory`.

A write goes to a temporary file next to its target, which the server syncs to its disk. It gets its name by a
hard link, which refuses a name that is taken, or by a rename, which does not. Both are extensions of OpenSSH:
a server without hard links cannot create exclusively, and the store says so once it is connected, or has
tried one: `rclone serve sftp` announces them and rejects them. Listings skip temporary files. Those left by a
crash are not removed, because another writer may be using them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import asyncssh

from podferry.contract.errors import FerryError
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation, translating, unused_keys
from podferry.storage.in_parallel import for_each_limited
from podferry.storage.object_names import checked_name
from podferry.storage.retries import pauses
from podferry.storage.same_names import SameNames
from podferry.storage.sftp.client import HARD_LINK, SftpClient
from podferry.storage.sftp.connections import Connections
from podferry.storage.sftp.directories import entry_of, list_directory, path_of
from podferry.storage.sftp.errors import CUTS
from podferry.storage.sftp.login import login_for, names_of_credentials
from podferry.storage.sftp.transfers import ReadRange, WriteFile
from podferry.storage.store import Body, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import LIMITS, Limits
from podferry.storage.walk import Directory, Walk, children_of
from podferry.storage.write_body import BodySource

T = TypeVar("T")
MAX_FILE_BYTES = 1 << 62
Work = Callable[[SftpClient], Awaitable[T]]


class SftpStore:
    """A directory of an SFTP server."""

    multipart = None
    request_builder = None
    server_copy = None

    def __init__(self, uri: Uri, config: StoreConfig, limits: Limits = LIMITS) -> None:
        """Open the store; sends nothing.

        Raises:
            CredentialsMissing: There is no user, neither password nor key, or no host key to check against.
            InvalidSpec: The URI or a credential is not valid.
        """
        self.uri, self._limits = uri, limits
        read = config.reload_credentials or (lambda: config.credentials)
        names = names_of_credentials(config.credentials)
        unused = unused_keys(config.credentials, names, config.reload_credentials)
        login = login_for(uri, config.credentials, unused)
        self._location = StoreLocation(uri, login.address, names)
        self._connections = Connections(uri, read, self._location, limits)
        self._names = SameNames(uri, self._found, self._directory)
        self._announces_links = True

    @property
    def exclusive_create(self) -> bool:
        """See `Store.exclusive_create`; false once the server is known to have no hard links."""
        return not self.why_not_exclusive

    @property
    def why_not_exclusive(self) -> str:
        """See `ServerDependentStore`."""
        if not self._announces_links:
            return f"the server does not announce {HARD_LINK}"
        response = self._connections.rejected.get(HARD_LINK)
        return f"the server announces {HARD_LINK} and rejects it: {response}" if response is not None else ""

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The listing is complete before the first entry is yielded."""
        walk = Walk(self.uri, self._directory, self._file_entry, self._limits.worker_threads)
        for entry in await walk.files(prefix):
            yield entry

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`; directories without files are skipped, as object stores have none."""
        return await children_of(self._directory, prefix)

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`. The tag consists of the time of modification in seconds and the size."""
        path = self._path(checked_name(name))

        async def work(client: SftpClient) -> Entry:
            return entry_of(name, await client.attributes(path), path)

        return await self._call(name, work)

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`. After a lost connection, what has not arrived is read over a new one."""
        path = self._path(checked_name(name))
        return await self._call(name, ReadRange(self._location, name, path, (start, length, tag, size)).run)

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`. Not repeated after a lost connection, unless nothing of the body was read."""
        checked_name(name)
        source = BodySource(body, self._limits.part_bytes, MAX_FILE_BYTES)
        target = WriteFile(self._location, name, self._path, exclusive=mode is WriteMode.CREATE)

        async def work(client: SftpClient) -> None:
            await target.run(client, source)

        async with self._names.writing(name):
            await source.finish(asyncio.ensure_future(self._call(name, work, None, repeat=False)))

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`. Directories remain."""
        ordered = [checked_name(name) for name in names]
        await for_each_limited(ordered, self._delete, self._limits.worker_threads)

    async def close(self) -> None:
        """Close the connections."""
        await self._connections.close()

    async def _delete(self, name: str) -> None:
        path = self._path(name)

        async def work(client: SftpClient) -> None:
            with suppress(FileNotFoundError):
                await client.remove(path)

        await self._call(name, work)

    async def _found(self, name: str) -> bool:
        path = self._path(name)

        async def work(client: SftpClient) -> bool:
            with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                await client.attributes(path)
                return True
            return False

        return await self._call(name, work)

    async def _directory(self, name: str) -> Directory:
        return await self._call(name, lambda client: list_directory(client, self.uri, name))

    async def _file_entry(self, name: str) -> Entry | None:
        return await self.stat(name)

    def _path(self, name: str) -> bytes:
        return path_of(self.uri, name)

    async def _call(self, name: str, work: Work[T], seconds: float | None = 0.0, *, repeat: bool = True) -> T:
        """Do something over a connection; if that is lost, again over another one.

        Args:
            name: For messages.
            work: What to do; called again after a lost connection.
            seconds: For one attempt; None for a write, whose body may take any time.
            repeat: Whether to try it again once there was a connection.
        """
        limit = self._limits.request_seconds if seconds is not None else None
        waits = pauses(self._limits.retries, self._limits.retry_seconds)
        with translating(self._location, name, answered=self._connections.answered):
            while True:
                started = False
                try:
                    async with self._connections.client() as client:
                        started = True
                        self._announces_links = HARD_LINK in client.extensions
                        async with asyncio.timeout(limit):
                            return await work(client)
                except CUTS as error:
                    pause = next(waits, None) if repeat or not started else None
                    if pause is None:
                        raise _cut(error) from error
                await asyncio.sleep(pause)


def _cut(error: BaseException) -> Exception:
    """A lost connection as an exception that says why in the system's words."""
    if isinstance(error, asyncssh.Error):
        return ConnectionResetError(104, error.reason)
    return error if isinstance(error, Exception) else FerryError()
