"""Reads and writes files over one channel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from podferry.contract.errors import FerryError, Unavailable
from podferry.contract.manifest import Entry
from podferry.storage.errors.translate import StoreLocation, check_listed, store_error, too_long, too_short
from podferry.storage.object_names import temporary_name
from podferry.storage.sftp.client import HARD_LINK, POSIX_RENAME, SftpClient
from podferry.storage.sftp.directories import entry_of
from podferry.storage.sftp.messages import Failure, Mode
from podferry.storage.sftp.pending_read import PendingRead
from podferry.storage.write_body import BodySource

PathOf = Callable[[str], bytes]


class ReadRange:
    """A range of a file that is being read; after a lost connection, `run` continues where it was.

    Args:
        location: Of the store, for messages.
        name: Of the file.
        path: At the server.
        start, length, tag, size: See `Store.read`.
    """

    def __init__(
        self, location: StoreLocation, name: str, path: bytes, wanted: tuple[int, int | None, str, int | None]
    ) -> None:
        self._location, self._name, self._path = location, name, path
        self._start, self._length, self._tag, self._size = wanted
        self._pending: PendingRead | None = None
        self._seen: Entry | None = None

    async def run(self, client: SftpClient) -> memoryview:
        """Read what has not arrived.

        Raises:
            Changed: It is not what was listed.
            Corrupt: It ends too early.
            OSError: The server's error, or that of the connection.
        """
        handle = await client.open(self._path)
        try:
            return await self._run(client, handle)
        finally:
            client.close(handle)

    async def _run(self, client: SftpClient, handle: bytes) -> memoryview:
        if self._pending is None:
            self._pending = await self._begin(client, handle)
        pending, location = self._pending, self._location
        reading = pending.request(client, handle)
        # Requested now, answered after the bytes: a file that changed meanwhile shows it.
        after = client.attributes_of(handle, self._path)
        entry = entry_of(self._name, await after, self._path)
        check_listed(location, entry, self._tag, self._size)
        if self._seen is not None and self._seen != entry:
            raise store_error("changed", location, self._name, f"tag {entry.tag}, was {self._seen.tag}")
        await reading
        if pending.is_longer:
            raise too_long(location, self._name, entry.size)
        if pending.end < len(pending.data) or self._start > entry.size:
            raise too_short(location, self._name, self._start, self._length, f"{entry.size} bytes")
        return memoryview(pending.data)

    async def _begin(self, client: SftpClient, handle: bytes) -> PendingRead:
        """Learn how much to read, if the caller does not know."""
        if self._length is not None and self._size is not None and self._tag:
            # All that could have changed is checked afterwards: one response less to wait for.
            return PendingRead(self._start, self._length, is_last=self._start + self._length == self._size)
        self._seen = entry_of(self._name, await client.attributes_of(handle, self._path), self._path)
        check_listed(self._location, self._seen, self._tag, self._size)
        length = max(0, self._seen.size - self._start) if self._length is None else self._length
        if self._start + length > self._seen.size:
            found = f"{self._seen.size} bytes"
            raise too_short(self._location, self._name, self._start, self._length, found)
        return PendingRead(self._start, length, is_last=self._start + length == self._seen.size)


class WriteFile:
    """A file that is written under a temporary name, made durable, and given its name.

    Args:
        location: Of the store, for messages.
        name: Of the file.
        path_of: The path of a name at the server.
        exclusive: Refuse a name that is taken.
    """

    def __init__(self, location: StoreLocation, name: str, path_of: PathOf, *, exclusive: bool) -> None:
        self._location, self._name, self._path_of, self._exclusive = location, name, path_of, exclusive
        self._path = path_of(name)

    async def run(self, client: SftpClient, source: BodySource) -> None:
        """Write the body.

        Raises:
            AlreadyExists: The name is taken, and the write is exclusive.
            OSError: The server's error, or that of the connection.
        """
        temporary = self._path_of(temporary_name(self._name))
        handle = await self._create(client, temporary)
        try:
            try:
                await _send(client, handle, source)
                await client.sync(handle)
            finally:
                client.close(handle)
            await self._publish(client, temporary)
        except BaseException as error:
            # Asked before the file is removed, which frees its space.
            full = isinstance(error, Failure) and await _is_full(client, self._directory)
            with suppress(Exception):  # the first error counts
                await asyncio.shield(client.remove(temporary))
            if full and isinstance(error, OSError):
                raise self._full(error) from error
            raise

    @property
    def _directory(self) -> bytes:
        return self._path.rpartition(b"/")[0] or (b"/" if self._path.startswith(b"/") else b".")

    async def _create(self, client: SftpClient, path: bytes) -> bytes:
        mode = Mode.WRITE | Mode.CREATE | Mode.EXCLUSIVE
        try:
            return await client.open(path, mode)
        except FileNotFoundError:
            denied = await self._make_directories(client)
            try:
                return await client.open(path, mode)
            except FileNotFoundError as error:
                raise denied or error from error
        except Failure as error:
            if await _is_full(client, self._directory):
                raise self._full(error) from error
            raise

    async def _make_directories(self, client: SftpClient) -> PermissionError | None:
        """Create what is missing of the directories above; why that may be refused."""
        parts, denied = self._directory.split(b"/"), None
        for count in range(1, len(parts) + 1):
            try:
                await client.make_directory(b"/".join(parts[:count]) or b"/")
            except PermissionError as error:
                denied = error
            except OSError:  # it exists, or the one above could not be created
                pass
        return denied

    async def _publish(self, client: SftpClient, temporary: bytes) -> None:
        if self._exclusive:
            await self._publish_new(client, temporary)
        elif POSIX_RENAME in client.extensions:
            await client.replace(temporary, self._path)
        else:
            await self._replace_in_two_steps(client, temporary)

    async def _publish_new(self, client: SftpClient, temporary: bytes) -> None:
        try:
            if not await self._linked(client, temporary):
                if await self._exists(client):
                    raise store_error("exists", self._location, self._name)
                await client.rename(temporary, self._path)
        except OSError as error:
            if not isinstance(error, ConnectionError) and await self._exists(client):
                raise store_error("exists", self._location, self._name) from error
            raise

    async def _linked(self, client: SftpClient, temporary: bytes) -> bool:
        """Publish by a hard link; false if the server has none, whatever it announces."""
        if not client.has(HARD_LINK):
            return False
        try:
            await client.link(temporary, self._path)
        except OSError:
            if client.has(HARD_LINK):
                raise
            return False
        await client.remove(temporary)
        return True

    async def _replace_in_two_steps(self, client: SftpClient, temporary: bytes) -> None:
        try:
            await client.rename(temporary, self._path)
        except Failure:
            if not await self._exists(client):
                raise
            await client.remove(self._path)
            await client.rename(temporary, self._path)

    async def _exists(self, client: SftpClient) -> bool:
        try:
            await client.attributes(self._path)
        except FileNotFoundError:
            return False
        return True

    def _full(self, error: OSError) -> FerryError:
        what, remedy = (
            f"there is no space left to write {self._location.uri / self._name}",
            "Free space there",
        )
        measured = f"0 blocks free for this user; {error.strerror}; {self._location.address}"
        return Unavailable.of(what, measured, remedy)


async def _is_full(client: SftpClient, directory: bytes) -> bool:
    """Whether the server says that there is no space left in a directory."""
    try:
        return await client.free_blocks(directory) == 0
    except OSError:
        return False


async def _send(client: SftpClient, handle: bytes, source: BodySource) -> None:
    """Send a body: while one part is under way, the next one is read."""
    start, sending = 0, list[asyncio.Future[None]]()
    try:
        while part := await asyncio.to_thread(source.next_part):
            await _all(sending)
            sending = client.write(handle, start, part)
            start += len(part)
    finally:
        await _all(sending)


async def _all(sending: list[asyncio.Future[None]]) -> None:
    for written in sending:
        await written
