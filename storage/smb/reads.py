"""Reads files of a share. A small one takes one round trip: it is opened, read and closed by one message."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from podferry.contract.manifest import Entry
from podferry.storage.errors.translate import StoreLocation, check_listed, too_short
from podferry.storage.smb.connection import Connection
from podferry.storage.smb.login import Share
from podferry.storage.smb.messages import (
    Access,
    Attributes,
    Created,
    Options,
    Request,
    Response,
    close,
    closed,
    create,
    created,
    read,
    read_bytes,
)
from podferry.storage.smb.nt_status import (
    DELETE_PENDING,
    END_OF_FILE,
    SHARING_VIOLATION,
    SUCCESS,
    StatusError,
)
from podferry.storage.store import Receive
from podferry.storage.timeouts_and_limits import MIB

T = TypeVar("T")
HELD = frozenset({SHARING_VIOLATION, DELETE_PENDING})
"""What a server answers while a writer has a file open: from its rename until it is closed, or deleted."""
PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Seconds between attempts: a writer needs one round trip, and another program may take for ever."""
MAX_READ_BYTES = 8 * MIB
"""Of one request, as much as servers take."""

STREAMED_BYTES = 2 * MIB
"""Of one request: they stay in the processor's cache until they are in the file."""


def entry_of(name: str, attributes: Attributes) -> Entry:
    """The entry of a file: its tag has the server's number for it, the last write and the size."""
    return Entry(name, attributes.size, f"{attributes.file_id:x}-{attributes.written:x}-{attributes.size:x}")


async def answered(connection: Connection, *requests: Request) -> list[Response]:
    """Send requests as one message; raises `StatusError` for the first that is refused."""
    responses = await connection.call(*requests)
    for response in responses:
        if response.status != SUCCESS:
            raise StatusError(response.status)
    return responses


async def when_free(work: Callable[[], Awaitable[T]]) -> T:
    """Await some work, again while a writer has the file open; raises `StatusError` if it keeps it."""
    for pause in PAUSES:
        try:
            return await work()
        except StatusError as error:
            if error.status not in HELD:
                raise
        await asyncio.sleep(pause)
    return await work()


async def opened(
    connection: Connection, path: str, access: int = Access.READ, options: int = Options.FILE
) -> Created:
    """Open a file that exists."""
    (response,) = await answered(connection, create(path, access, options=options))
    return created(response)


class Reader:
    """Reads one file.

    Args:
        location: Of the store, for errors.
        name, path: Of the file, relative to the store, and the server's.
        tag, size: What it must be, if that is known: see `Store.read`.
    """

    def __init__(self, location: StoreLocation, name: str, path: str, tag: str, size: int | None) -> None:
        self._location, self._name, self._path = location, name, path
        self._tag, self._size = tag, size

    async def read(self, share: Share, start: int, length: int | None) -> memoryview:
        """See `Store.read`."""
        connection = share.connection
        most = min(MAX_READ_BYTES, share.negotiated.max_read, connection.max_payload)
        count = length if length is not None or self._size is None else max(0, self._size - start)
        if count is not None and 0 < count <= most:
            return await self._read_at_once(connection, start, count)
        (first,) = await answered(connection, create(self._path, Access.READ, options=Options.FILE))
        file = created(first)
        try:
            entry = self._checked(file.attributes)
            count = max(0, entry.size - start) if count is None else count
            self._check_end(entry, start, count)
            data = await self._read_parts(connection, file, start, count, most)
        finally:
            (last,) = await connection.call(close(file.handle))
        self._check_unchanged(file.attributes, last)
        return data

    async def stream(self, share: Share, start: int, count: int, receive: Receive) -> None:
        """See `StreamingStore.stream`."""
        connection = share.connection
        most = min(STREAMED_BYTES, share.negotiated.max_read, connection.max_payload)
        file = await opened(connection, self._path)
        try:
            self._check_end(self._checked(file.attributes), start, count)
            for offset in range(0, count, most):
                end = min(offset + most, count)
                await self._read_part(connection, file, (start, count), (offset, end), receive)
        finally:
            (last,) = await connection.call(close(file.handle))
        self._check_unchanged(file.attributes, last)

    async def _read_at_once(self, connection: Connection, start: int, count: int) -> memoryview:
        first, second, third = await connection.call(
            create(self._path, Access.READ, options=Options.FILE), read(start, count), close()
        )
        if first.status != SUCCESS:
            raise StatusError(first.status)
        attributes = created(first).attributes
        self._check_end(self._checked(attributes), start, count)
        data = _data(second)
        self._check_unchanged(attributes, third)
        if len(data) != count:
            raise self._shorter(start, count, start + len(data))
        return data

    async def _read_parts(
        self, connection: Connection, file: Created, start: int, count: int, most: int
    ) -> memoryview:
        data = memoryview(bytearray(count))

        def take(found: memoryview, offset: int) -> None:
            data[offset : offset + len(found)] = found

        parts = ((offset, min(offset + most, count)) for offset in range(0, count, most))
        span = start, count
        await asyncio.gather(*(self._read_part(connection, file, span, part, take) for part in parts))
        return data

    async def _read_part(
        self,
        connection: Connection,
        file: Created,
        span: tuple[int, int],
        part: tuple[int, int],
        receive: Receive,
    ) -> None:
        """Read a part of a span, from one position in it to another."""
        (start, count), (offset, end) = span, part
        while offset < end:
            (response,) = await connection.call(read(start + offset, end - offset, file.handle))
            found = _data(response)
            if not found:
                raise self._shorter(start, count, start + offset)
            receive(found, offset)
            offset += len(found)
            connection.reuse(response)

    def _checked(self, attributes: Attributes) -> Entry:
        entry = entry_of(self._name, attributes)
        check_listed(self._location, entry, self._tag, self._size)
        return entry

    def _check_end(self, entry: Entry, start: int, count: int) -> None:
        if start + count > entry.size:
            raise self._shorter(start, count, entry.size)

    def _shorter(self, start: int, count: int, size: int) -> Exception:
        return too_short(self._location, self._name, start, count, f"{size} bytes")

    def _check_unchanged(self, before: Attributes, last: Response) -> None:
        """Compare a file with what it was when it was opened; not every server says so when it closes it."""
        if last.status != SUCCESS:
            raise StatusError(last.status)
        size, written = closed(last)
        if written and (size, written) != (before.size, before.written):
            after = Attributes(size, written, before.file_id, before.flags)
            check_listed(self._location, entry_of(self._name, after), entry_of(self._name, before).tag, None)


def _data(response: Response) -> memoryview:
    if response.status == END_OF_FILE:
        return memoryview(b"")
    if response.status != SUCCESS:
        raise StatusError(response.status)
    return read_bytes(response)
