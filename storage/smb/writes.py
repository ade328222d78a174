"""Writes files of a share: whole, or not at all.

A file is written under a temporary name and renamed. A rename that refuses a name that is taken is no proof
that no other did the same: Samba looks and then renames. So an exclusive write gives the file its name by a
hard link, which fails if the name is taken.

On a share without hard links, as Azure's, the file is created under its own name, which only one of several
can; it is marked as deleted at once and until it is complete. Nobody can open it before, and a server removes
it if the connection is lost. At Samba that is no way: it creates a file, and then looks who has it open.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from podferry.storage.errors.translate import StoreLocation
from podferry.storage.object_names import temporary_name
from podferry.storage.smb.connection import Connection
from podferry.storage.smb.directories import Lister
from podferry.storage.smb.file_names import server_path
from podferry.storage.smb.information import link, query_name, rename, set_deleted
from podferry.storage.smb.letter_case import LetterCase
from podferry.storage.smb.login import Share
from podferry.storage.smb.messages import (
    SHARE_NOTHING,
    Access,
    Disposition,
    Options,
    Request,
    Response,
    bytes_written,
    close,
    create,
    created,
    flush,
    write,
)
from podferry.storage.smb.nt_status import (
    ACCESS_DENIED,
    DELETE_PENDING,
    OBJECT_PATH_NOT_FOUND,
    SHARING_VIOLATION,
    SUCCESS,
    ConnectionLost,
    StatusError,
)
from podferry.storage.smb.reads import answered
from podferry.storage.timeouts_and_limits import MIB
from podferry.storage.write_body import BodySource

MAX_WRITE_BYTES = 1 * MIB
"""Of one request; larger ones are no faster, and each is copied."""
IN_USE = frozenset({SHARING_VIOLATION, DELETE_PENDING, ACCESS_DENIED})
"""What a server answers while somebody has a file open that is to be replaced."""
BEING_CREATED = frozenset({SHARING_VIOLATION, DELETE_PENDING})
PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between attempts while a file is in use."""
MISSING = 0xC0000034
NO_LINKS = frozenset({0xC0000002, 0xC0000003, 0xC000000D, 0xC0000010, 0xC00000BB, ACCESS_DENIED})
"""How servers refuse hard links that they do not have: not implemented, invalid class, parameter or request,
not supported; Samba says "access denied" for what its file system does not permit."""


class Writer:
    """Writes files of one store.

    Args:
        location: Of the store, for errors.
        base: The path of the store below its share.
        lister: Finds names that differ in case.
    """

    def __init__(self, location: StoreLocation, base: str, lister: Lister) -> None:
        self._base, self._case = base, LetterCase(location, lister)

    async def replace(self, share: Share, name: str, source: BodySource) -> None:
        """Write a file under a temporary name, and rename it."""
        target, connection = self._path(name), share.connection
        handle, named = await self._create_temporary(share, name)
        try:
            self._case.check_directories(name, named)
            await self._fill(share, handle, source)
            await answered(connection, flush(handle))
            await self._rename(connection, handle, target)
        except BaseException:
            with suppress(ConnectionLost):
                await asyncio.shield(connection.call(set_deleted(True, handle), close(handle)))
            raise
        named, closed = await connection.call(query_name(handle), close(handle))
        if closed.status != SUCCESS:
            raise StatusError(closed.status)
        self._case.check_written(name, named)

    async def create(self, share: Share, name: str, body: bytes) -> None:
        """Create a file that does not exist; raises `StatusError` if it does."""
        target, connection = self._path(name), share.connection
        handle, named = await self._create_temporary(share, name)
        try:
            self._case.check_directories(name, named)
            await self._write_all(share, handle, 0, memoryview(body))
            await answered(connection, flush(handle))
            (linked,) = await connection.call(link(handle, target))
        finally:
            with suppress(ConnectionLost):
                await asyncio.shield(connection.call(set_deleted(True, handle), close(handle)))
        if linked.status in NO_LINKS:
            await self._create_in_place(share, target, body)
        elif linked.status != SUCCESS:
            raise StatusError(linked.status)

    async def _create_in_place(self, share: Share, target: str, body: bytes) -> None:
        """Create a file under its own name, deleted until it is complete."""
        connection = share.connection
        handle = await self._create_exclusively(connection, target)
        try:
            await self._write_all(share, handle, 0, memoryview(body))
            await answered(connection, flush(handle))
            await answered(connection, set_deleted(False, handle))
        except BaseException:
            with suppress(ConnectionLost):
                await asyncio.shield(connection.call(close(handle)))
            raise
        await answered(connection, close(handle))

    async def delete(self, share: Share, name: str) -> None:
        """Delete a file; a missing one is ignored."""
        request = create(self._path(name), Access.DELETE, options=Options.FILE | Options.DELETE_ON_CLOSE)
        first, second = await share.connection.call(request, close())
        for response in (first, second):
            if response.status != SUCCESS:
                raise StatusError(response.status)

    def _path(self, name: str) -> str:
        path = server_path(name)
        return f"{self._base}\\{path}" if self._base else path

    async def _create_temporary(self, share: Share, name: str) -> tuple[bytes, Response]:
        """Create a file that becomes `name`; its handle, and the response with its path."""
        temporary = self._path(temporary_name(name))
        await self._case.check_free(share, temporary.rpartition("\\")[0], name)
        request = create(temporary, Access.WRITE, Disposition.CREATE, Options.FILE, SHARE_NOTHING)
        first, named = await self._with_directories(share.connection, temporary, request, query_name())
        return await self._handle(share.connection, [first]), named

    async def _create_exclusively(self, connection: Connection, path: str) -> bytes:
        for pause in (*PAUSES, None):
            try:
                return await self._create(connection, path, Access.WRITE, SHARE_NOTHING, set_deleted(True))
            except StatusError as error:
                # Somebody creates it just now; if that fails, nothing will be there.
                if error.status not in BEING_CREATED or pause is None:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _create(
        self, connection: Connection, path: str, access: int, share: int, *then: Request
    ) -> bytes:
        """Create a file, and the directories above it if they are missing; its handle."""
        request = create(path, access, Disposition.CREATE, Options.FILE, share)
        return await self._handle(connection, await self._with_directories(connection, path, request, *then))

    async def _with_directories(
        self, connection: Connection, path: str, *requests: Request
    ) -> list[Response]:
        responses = await connection.call(*requests)
        if responses[0].status in {OBJECT_PATH_NOT_FOUND, MISSING}:
            await self._make_directories(connection, path)
            responses = await connection.call(*requests)
        return responses

    async def _handle(self, connection: Connection, responses: list[Response]) -> bytes:
        first, *others = responses
        if first.status != SUCCESS:
            raise StatusError(first.status)
        handle = created(first).handle
        for response in others:
            if response.status != SUCCESS:
                await connection.call(close(handle))
                raise StatusError(response.status)
        return handle

    async def _make_directories(self, connection: Connection, path: str) -> None:
        parts = path.split("\\")[:-1]
        for count in range(1, len(parts) + 1):
            directory = "\\".join(parts[:count])
            await answered(
                connection,
                create(directory, Access.ATTRIBUTES, Disposition.OPEN_OR_CREATE, Options.DIRECTORY),
                close(),
            )

    async def _fill(self, share: Share, handle: bytes, source: BodySource) -> None:
        """Write the body: a part is read while the one before it is sent."""
        start, sending = 0, None
        try:
            while part := await asyncio.to_thread(source.next_part):
                if sending is not None:
                    await sending
                sending = asyncio.ensure_future(self._write_all(share, handle, start, memoryview(part)))
                start += len(part)
            if sending is not None:
                await sending
        except BaseException:
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            raise

    async def _write_all(self, share: Share, handle: bytes, start: int, data: memoryview) -> None:
        most = min(MAX_WRITE_BYTES, share.negotiated.max_write, share.connection.max_payload)

        async def put(offset: int) -> None:
            chunk = data[offset : offset + most]
            while chunk:
                (response,) = await answered(share.connection, write(handle, start + offset, chunk))
                count = bytes_written(response)
                if not 0 < count <= len(chunk):
                    raise ConnectionLost(f"the server has written {count} of {len(chunk)} bytes")
                chunk, offset = chunk[count:], offset + count

        await asyncio.gather(*(put(offset) for offset in range(0, len(data), most)))

    async def _rename(self, connection: Connection, handle: bytes, target: str) -> None:
        for pause in (*PAUSES, None):
            (response,) = await connection.call(rename(handle, target, replace=True))
            if response.status == SUCCESS:
                return
            if response.status not in IN_USE or pause is None:
                raise StatusError(await self._why(connection, target, response.status))
            await asyncio.sleep(pause)

    async def _why(self, connection: Connection, target: str, status: int) -> int:
        """Why a file is not replaced: Samba says "access denied" also if somebody has it open."""
        if status != ACCESS_DENIED:
            return status
        request = create(target, Access.READ, options=Options.FILE, share=SHARE_NOTHING)
        first, _ = await connection.call(request, close())
        return SHARING_VIOLATION if first.status == SHARING_VIOLATION else status
