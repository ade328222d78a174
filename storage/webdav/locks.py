"""Exclusive creation under a lock: only one podferry at a time moves a file to a name that must be free.

A move with `Overwrite: F` fails if its target exists (RFC 4918, section 10.6), but some servers look first
and rename then: of eight moves at the same moment, three succeeded at WsgiDAV. A lock has one holder (section
7). It is not on the target, where it would make an empty file, but on a temporary name that belongs to it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp

from podferry.contract.errors import FerryError
from podferry.storage.errors.translate import store_error
from podferry.storage.object_names import temporary_name
from podferry.storage.webdav.client import FAILED, LOCKED, DavClient

WAIT_SECONDS = 0.05
"""Until the next attempt, where another one holds the lock."""
EXCLUSIVE = (
    b'<?xml version="1.0" encoding="utf-8"?><lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope>'
    b"<locktype><write/></locktype><owner>podferry</owner></lockinfo>"
)


def lock_name(name: str) -> str:
    """The temporary name whose lock belongs to a name."""
    return temporary_name(name, hashlib.sha256(name.encode()).hexdigest()[:16])


class DavLocks:
    """Locks at a server."""

    def __init__(self, client: DavClient) -> None:
        self._client = client

    @asynccontextmanager
    async def holding(self, name: str) -> AsyncIterator[None]:
        """Hold the lock of a name; waits for others to release it. It expires if this process ends.

        Raises:
            aiohttp.ClientResponseError: The server has no locks: 405, 501, ….
            TimeoutError: Others hold it for too long.
        """
        file = lock_name(name)
        async with asyncio.timeout(self._client.limits.request_seconds):
            token = await self._try_take(file)
            while not token:
                await asyncio.sleep(WAIT_SECONDS)
                token = await self._try_take(file)
        try:
            yield
        finally:
            await self.release(file, token)

    async def _try_take(self, file: str) -> str:
        """As `take`; once more, if the server fails while another one removes the lock's file."""
        try:
            return await self.take(file)
        except aiohttp.ClientResponseError as error:
            if error.status != FAILED:  # WsgiDAV's, if the file is gone when it looks for it
                raise
        await asyncio.sleep(WAIT_SECONDS)
        return await self.take(file)

    async def take(self, file: str) -> str:
        """The token of a new lock, empty if somebody holds one."""
        seconds = int(self._client.limits.request_seconds) + 1
        headers = {"Depth": "0", "Timeout": f"Second-{seconds}", "Content-Type": "application/xml"}
        url = self._client.url(file)
        async with self._client.session.request("LOCK", url, headers, EXCLUSIVE) as response:
            if response.status == LOCKED:
                return ""
            response.raise_for_status()
            token = response.headers.get("Lock-Token", "")
            if not token:
                raise store_error("unsupported", self._client.location, file, "LOCK: no Lock-Token")
            return token

    async def release(self, file: str, token: str) -> None:
        """Give up a lock, and remove its file unless somebody else has locked it by now."""
        with suppress(aiohttp.ClientError, OSError, FerryError):  # it expires
            async with asyncio.timeout(self._client.limits.stall_seconds):
                async with self._client.session.request(
                    "UNLOCK", self._client.url(file), {"Lock-Token": token}
                ) as response:
                    response.raise_for_status()
                await self._client.delete(file)
