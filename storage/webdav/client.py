"""The requests of WebDAV that the engine needs, with their responses checked. Source: RFC 4918."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

import aiohttp

from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation, store_error
from podferry.storage.http.session import NO_HEADERS, WebSession
from podferry.storage.object_names import checked_name, is_temporary, join
from podferry.storage.timeouts_and_limits import Limits
from podferry.storage.walk import Directory
from podferry.storage.webdav.errors import broken_off, elsewhere, no_size, no_webdav, unlisted
from podferry.storage.webdav.multistatus import (
    QUERY,
    BrokenOff,
    MultistatusError,
    MultistatusParser,
    Resource,
)

MULTI_STATUS = 207
NO_WEBDAV = (405, 501)
"""To PROPFIND."""
REDIRECTED = 300
NOT_FOUND, METHOD_NOT_ALLOWED, CONFLICT, PRECONDITION_FAILED, LOCKED = 404, 405, 409, 412, 423
FAILED = 500
UNCLEAR_TO_PUT = (NOT_FOUND, METHOD_NOT_ALLOWED, CONFLICT, FAILED)
UNCLEAR_TO_MKCOL = (NOT_FOUND, METHOD_NOT_ALLOWED, CONFLICT)
"""What they mean: `podferry.storage.webdav.refusals`."""
MAX_LISTING_BYTES = 256 << 20
"""Of one directory: some 300,000 files. A response without end must not fill the memory."""
CHUNK = 1 << 16


class DavClient(NamedTuple):
    """A server.

    Attributes:
        uri: Names are relative to it.
        session: Its connections.
        location: For messages.
        limits: Timeouts.
    """

    uri: Uri
    session: WebSession
    location: StoreLocation
    limits: Limits

    def url(self, name: str, *, directory: bool = False) -> str:
        """The encoded address of a name."""
        path = quote(join(self.uri.key, name))
        return f"{self.location.endpoint}/{path}{'/' if directory and path else ''}"

    async def entry(self, name: str) -> Entry | None:
        """The entry of a file, or None if it is a directory.

        Raises:
            aiohttp.ClientResponseError: There is none, among others.
        """
        found = self._own(name, await self._resources(name, self.url(name), depth=0))
        return None if found.is_directory else self._entry(name, found)

    async def list_directory(self, name: str) -> Directory:
        """What is directly in a directory.

        Raises:
            FerryError: The server lists something else.
            aiohttp.ClientError: It refuses; 404 if there is no such directory.
        """
        found = await self._resources(name, self.url(name, directory=True), depth=1)
        if not (self._own(name, found)).is_directory:
            return Directory(problem="a file")
        entries, unsized, directories = list[Entry](), list[str](), list[str]()
        for resource in found:
            child = self._child(name, resource)
            if not child or is_temporary(child):
                continue
            if resource.status:
                raise unlisted(self.uri / child, resource.status)
            if resource.is_directory:
                directories.append(child)
            elif resource.size is None:
                unsized.append(child)
            else:
                entries.append(self._entry(child, resource))
        return Directory(tuple(entries), tuple(unsized), tuple(sorted(directories)))

    async def is_directory(self, path: str) -> bool | None:
        """Whether there is a directory or a file, None if neither; `path` begins at the server's root."""
        url = f"{self.location.endpoint}/{quote(path)}"
        try:
            return any(found.is_directory for found in await self._resources("", url, depth=0))
        except aiohttp.ClientResponseError as error:
            if error.status not in {NOT_FOUND, CONFLICT}:
                raise
            return None

    async def put(self, name: str, body: bytes | AsyncIterator[bytes]) -> int:
        """Upload a file under a name that nobody else uses. The time that the body takes does not count.

        Returns:
            The HTTP status: of success, or one of `UNCLEAR_TO_PUT`.
        """
        async with asyncio.timeout(self.limits.request_seconds) as deadline:
            data = body if isinstance(body, bytes) else _moving(body, deadline, self.limits.request_seconds)
            return await self._send("PUT", self.url(name), data=data, accept=UNCLEAR_TO_PUT)

    async def make_directory(self, path: str) -> int:
        """Make a directory; `path` begins at the server's root.

        Returns:
            The HTTP status: 405 if something is there, or if nothing may be; 409 or 404 if the directory
            above is missing, 423 if somebody else is just making it.
        """
        url = f"{self.location.endpoint}/{quote(path)}/"
        return await self._send("MKCOL", url, accept=(*UNCLEAR_TO_MKCOL, LOCKED))

    async def move(self, name: str, target: str, *, overwrite: bool) -> int:
        """Rename a file.

        Returns:
            The HTTP status: 412 if the target exists and may not be replaced, 423 if somebody else is just
            writing there.
        """
        headers = {"Destination": self.url(target), "Overwrite": "T" if overwrite else "F"}
        return await self._send("MOVE", self.url(name), headers, accept=(PRECONDITION_FAILED, LOCKED))

    async def delete(self, name: str, *, accept: tuple[int, ...] = ()) -> int:
        """Delete a file; nothing happens if there is none.

        Returns:
            The HTTP status: of success, 404, or one of `accept`.
        """
        return await self._send("DELETE", self.url(name), accept=(NOT_FOUND, *accept))

    async def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] = NO_HEADERS,
        data: bytes | AsyncIterator[bytes] | None = None,
        accept: tuple[int, ...] = (),
    ) -> int:
        """The status of a response: one of success, or of `accept`; raises for any other."""
        async with self.session.request(method, url, headers, data) as response:
            if response.status not in accept:
                response.raise_for_status()
                if response.status >= REDIRECTED:
                    raise no_webdav(self.uri, f"{method}: HTTP {response.status}")
            return response.status

    async def _resources(self, name: str, url: str, depth: int) -> list[Resource]:
        headers = {"Depth": str(depth), "Content-Type": "application/xml"}
        async with asyncio.timeout(self.limits.request_seconds):
            async with self.session.request("PROPFIND", url, headers, QUERY, redirects=True) as response:
                if response.status not in NO_WEBDAV:
                    response.raise_for_status()
                if response.status != MULTI_STATUS:
                    raise no_webdav(self.uri / name, f"HTTP {response.status}, {response.content_type}")
                return await self._parsed(name, response)

    async def _parsed(self, name: str, response: aiohttp.ClientResponse) -> list[Resource]:
        parser, received = MultistatusParser(), 0
        try:
            async for data in response.content.iter_chunked(CHUNK):
                received += len(data)
                if received > MAX_LISTING_BYTES:
                    raise store_error("endless", self.location, name, f"over {MAX_LISTING_BYTES >> 20} MiB")
                parser.feed(data)
            return parser.close()
        except aiohttp.ClientPayloadError as error:
            ends = f"the listing ends after {received} bytes"
            raise store_error("cut", self.location, name, ends) from error
        except BrokenOff as error:
            raise broken_off(self.uri / name, str(error)) from error
        except MultistatusError as error:
            raise no_webdav(self.uri / name, str(error)) from error

    def _own(self, name: str, found: list[Resource]) -> Resource:
        own = next((each for each in found if self._relative(each, name) == ""), None)
        if own is None:
            listed = found[0].href[:200] if found else "nothing"
            raise elsewhere(self.uri / name, f"{listed} comes first")
        if own.status:
            raise unlisted(self.uri / name, own.status)
        return own

    def _child(self, directory: str, resource: Resource) -> str:
        """The name of a member, empty for the directory itself."""
        below = self._relative(resource, directory)
        if below is None or "/" in below:
            raise elsewhere(self.uri / directory, resource.href[:200])
        name = checked_name(join(directory, below)) if below else ""
        if "\ufffd" in name:
            raise store_error("name", self.location, name, f"{resource.href[:200]} is not in UTF-8")
        return name

    def _relative(self, resource: Resource, name: str) -> str | None:
        """The path of a resource below a name, empty for that name itself; None if it is not below."""
        path = unquote(urlsplit(resource.href).path).rstrip("/")
        top = f"/{join(self.uri.key, name)}".rstrip("/")
        if path == top:
            return ""
        return path.removeprefix(f"{top}/") if path.startswith(f"{top}/") else None

    def _entry(self, name: str, resource: Resource) -> Entry:
        if resource.size is None:
            raise no_size(self.uri / name)
        return Entry(name, resource.size, resource.tag)


async def _moving(
    body: AsyncIterator[bytes], deadline: asyncio.Timeout, seconds: float
) -> AsyncIterator[bytes]:
    """The body; each piece may take so long to send, and there is no deadline while the body is read."""
    deadline.reschedule(None)
    async for piece in body:
        deadline.reschedule(asyncio.get_running_loop().time() + seconds)
        yield piece
        deadline.reschedule(None)
    deadline.reschedule(asyncio.get_running_loop().time() + seconds)
