"""Uploads to a WebDAV server: to a temporary name, which is moved when the file is complete.

What must not exist yet is moved under a lock (`podferry.storage.webdav.locks`). Before the first such file,
lock and move are tried out: a server that lacks one of them takes no checkpoints.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext, suppress

import aiohttp

from podferry.contract.errors import FerryError, Unavailable
from podferry.storage.errors.translate import store_error
from podferry.storage.object_names import join, temporary_name
from podferry.storage.webdav.client import (
    CONFLICT,
    LOCKED,
    NOT_FOUND,
    PRECONDITION_FAILED,
    REDIRECTED,
    UNCLEAR_TO_PUT,
    DavClient,
)
from podferry.storage.webdav.errors import changed_name, not_exclusive, not_stored
from podferry.storage.webdav.locks import DavLocks
from podferry.storage.webdav.refusals import Refusals
from podferry.storage.write_body import BodySource

LOCKED_SECONDS = 0.05
"""Until the next attempt, where another request just writes."""
PROBE = b"podferry"
TEMPORARY = (429, 502, 503, 504, 507)
"""Statuses that say nothing about what a server can do."""
OF_URLS = "?;#"
"""Characters at which some servers cut the target of a move, although they are encoded: the file would
replace another one."""


class DavWrites:
    """Writes of one store."""

    def __init__(self, client: DavClient) -> None:
        self._client = client
        self._made = {""}
        self._locks, self._refusals = DavLocks(client), Refusals(client)
        self._making, self._proving = asyncio.Lock(), asyncio.Lock()
        self._is_exclusive = self._keeps_names = False

    async def write(self, name: str, source: BodySource, *, exclusive: bool) -> None:
        """Write a file; `exclusive` if it must not exist yet.

        Raises:
            AlreadyExists: It exists.
            InvalidSpec: The server would replace it.
            aiohttp.ClientError: The server refuses.
        """
        try:
            async with self._making:
                await self._make_directory(join(self._client.uri.key, name.rpartition("/")[0]))
            if any(character in join(self._client.uri.key, name) for character in OF_URLS):
                await self._prove_names(name)
            if exclusive:
                await self._prove_exclusive(name)
            await self._upload_and_move(name, source, exclusive=exclusive)
        except (aiohttp.ClientError, Unavailable):
            self._made = {""}  # somebody may have removed a directory
            raise

    async def _upload_and_move(self, name: str, source: BodySource, *, exclusive: bool) -> None:
        temporary = temporary_name(name)
        try:
            small = await source.read_small()
            await self._upload(temporary, small if small is not None else source.stream())
            async with self._locks.holding(name) if exclusive else nullcontext():
                await self._move(temporary, name, overwrite=not exclusive)
        except BaseException:
            await self._discard(temporary)
            raise

    async def _upload(self, name: str, body: bytes | AsyncIterator[bytes]) -> None:
        sent = len(body) if isinstance(body, bytes) else 0

        async def counted(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            nonlocal sent
            async for piece in pieces:
                sent += len(piece)
                yield piece

        status = await self._client.put(name, body if isinstance(body, bytes) else counted(body))
        if status in UNCLEAR_TO_PUT:
            raise await self._refusals.error(name, status, sent)
        found = await self._client.entry(name)
        if found is None or found.size != sent:
            raise not_stored(self._client.uri / name, found.size if found else 0, sent)
        self._refusals.has_stored = True

    async def _move(self, temporary: str, name: str, *, overwrite: bool) -> None:
        if await self._moved(temporary, name, overwrite=overwrite) == PRECONDITION_FAILED:
            raise store_error("exists", self._client.location, name)

    async def _moved(self, name: str, target: str, *, overwrite: bool) -> int:
        return await self._unlocked(lambda: self._client.move(name, target, overwrite=overwrite))

    async def _unlocked(self, request: Callable[[], Awaitable[int]]) -> int:
        """The status of a request; it is sent again while another one writes at the same place."""
        async with asyncio.timeout(self._client.limits.request_seconds):
            status = await request()
            while status == LOCKED:
                await asyncio.sleep(LOCKED_SECONDS)
                status = await request()
        return status

    async def _prove_exclusive(self, name: str) -> None:
        """Find out, once, whether the server refuses a second lock, and a move to a name that is taken."""
        async with self._proving:
            if self._is_exclusive:
                return
            status = await self._probe(temporary_name(name), taken=True)
            if status != PRECONDITION_FAILED:
                raise not_exclusive(self._client.uri, f"HTTP {status} to a MOVE with Overwrite: F")
            if refused := await self._lock_problem(temporary_name(name)):
                raise not_exclusive(self._client.uri, refused)
            self._is_exclusive = True

    async def _lock_problem(self, file: str) -> str:
        """Why locks of the server exclude nobody, or empty."""
        try:
            token = await self._locks.take(file)
        except aiohttp.ClientResponseError as error:
            if error.status in TEMPORARY:
                raise
            return f"HTTP {error.status} to LOCK"
        second = await self._locks.take(file)
        for each in filter(None, (token, second)):
            await self._locks.release(file, each)
        return "a second LOCK succeeds" if second else ""

    async def _prove_names(self, name: str) -> None:
        """Find out, once, whether a file keeps a name with these characters when it is moved."""
        async with self._proving:
            if not self._keeps_names:
                status = await self._probe(temporary_name(name) + OF_URLS, taken=False)
                if status >= REDIRECTED:
                    raise changed_name(self._client.uri / name)
                self._keeps_names = True

    async def _probe(self, target: str, *, taken: bool) -> int:
        """The HTTP status of moving a file to a name that may be taken, or 404 if it is not there then."""
        first = temporary_name(target)
        try:
            await self._upload(first, PROBE)
            if taken:
                await self._upload(target, PROBE)
            return await self._probe_move(first, target)
        finally:
            for each in (first, target, target.removesuffix(OF_URLS)):
                await self._discard(each)

    async def _probe_move(self, first: str, target: str) -> int:
        try:
            status = await self._moved(first, target, overwrite=False)
            await self._client.entry(target)
        except aiohttp.ClientResponseError as error:
            if error.status in TEMPORARY:
                raise
            return error.status
        return status

    async def _make_directory(self, path: str) -> None:
        """Make a directory and those above it, as far as they are missing."""
        if path in self._made:
            return
        try:
            status = await self._unlocked(lambda: self._client.make_directory(path))
        except aiohttp.ClientResponseError:  # WsgiDAV fails if somebody else has just made it; now it says so
            status = await self._unlocked(lambda: self._client.make_directory(path))
        if status in {CONFLICT, NOT_FOUND}:
            await self._make_directory(path.rpartition("/")[0])
            await self._unlocked(lambda: self._client.make_directory(path))
        self._made.add(path)

    async def _discard(self, name: str) -> None:
        with suppress(aiohttp.ClientError, OSError, FerryError):  # the first error counts
            async with asyncio.timeout(self._client.limits.stall_seconds):
                # A server may not have noticed yet that the upload was cut.
                await self._unlocked(lambda: self._client.delete(name, accept=(LOCKED,)))
