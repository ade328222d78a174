"""The requests to the Hugging Face Hub that the engine needs, with their responses checked.

Source: huggingface_hub, `hf_api.py` and `utils/_http.py`: the paths, the pages, and the codes of errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from podferry.contract.errors import Corrupt
from podferry.contract.manifest import Entry
from podferry.storage.errors.broken_listing import endless_listing
from podferry.storage.errors.translate import StoreLocation, translating
from podferry.storage.http.origin_headers import is_same_server
from podferry.storage.http.session import NO_HEADERS, WebSession
from podferry.storage.huggingface.errors import no_hub, raise_for_hub
from podferry.storage.huggingface.repository import Repository, quoted_revision
from podferry.storage.object_names import checked_name
from podferry.storage.retries import retry_temporary
from podferry.storage.timeouts_and_limits import MAX_LISTED, Limits

T = TypeVar("T")
MAX_PAGE_BYTES = 16 << 20
"""Of one response; a page of a listing has 1,000 files."""


class LargeFile(msgspec.Struct):
    """What Git LFS, or its successor, holds of a file; `oid` is its SHA-256."""

    oid: str
    size: int


class Member(msgspec.Struct):
    """A file or a directory of a tree; `oid` is Git's."""

    type: str
    path: str
    oid: str
    size: int = 0
    lfs: LargeFile | None = None

    @property
    def entry(self) -> Entry:
        """The file, with the checksum of its content as its tag."""
        found = self.lfs or self
        return Entry(self.path, found.size, found.oid)


class Commit(msgspec.Struct):
    """What a revision is."""

    sha: str


class Hub(NamedTuple):
    """A repository at the Hub.

    Attributes:
        repository: Its name and revision.
        session: Connections.
        location: For messages.
        limits: Timeouts.
    """

    repository: Repository
    session: WebSession
    location: StoreLocation
    limits: Limits

    async def commit(self) -> str:
        """The commit that the revision is now.

        Raises:
            BucketNotFound: There is no such repository, or it is private.
            NotFound: There is no such revision.
            AccessDenied: It is gated, or the token is not valid.
        """
        url = f"{self.repository.api}/revision/{quoted_revision(self.repository.revision)}"
        return (await self._json("GET", self._url(url), Commit)).sha

    async def tree(self, commit: str, path: str, *, recursive: bool) -> AsyncIterator[Member]:
        """Members of a directory, or all below it; names are relative to the repository."""
        below = f"/{quote(path)}" if path else ""
        query = f"recursive={str(recursive).lower()}&expand=false"
        url = self._url(f"{self.repository.api}/tree/{commit}{below}?{query}")
        seen, count = {url}, 0
        while url:
            members, url = await self._page(url)
            for member in members:
                yield self._checked(member, path)
            count += len(members)
            if url in seen or count > MAX_LISTED:
                raise endless_listing(self.location.uri, count, url[:200])
            seen.add(url)

    async def find(self, commit: str, path: str) -> Member | None:
        """The file or directory at a path, or None if there is none."""
        url = self._url(f"{self.repository.api}/paths-info/{commit}")
        body = msgspec.json.encode({"paths": [path], "expand": False})
        found = await self._json("POST", url, list[Member], body)
        return next((member for member in found if member.path == path), None)

    def file_url(self, commit: str, path: str) -> str:
        """Where a file is read."""
        return self._url(f"{self.repository.page}/resolve/{commit}/{quote(path)}")

    def _url(self, path: str) -> str:
        return f"{self.location.endpoint}{path}"

    def _checked(self, member: Member, directory: str) -> Member:
        top = f"{directory}/" if directory else ""
        if not member.path.startswith(top) or member.type not in {"file", "directory"}:
            what = f"the Hub lists what is no file below {self.location.uri}"
            measured = f"{member.type[:40]!a} {member.path[:200]!a}"
            raise Corrupt.of(what, measured, "Check HF_ENDPOINT and what is between")
        checked_name(member.path)
        return member

    async def _page(self, url: str) -> tuple[list[Member], str]:
        """Members, and the URL of the next page or empty; asked for again if the connection is cut."""

        async def once() -> tuple[list[Member], str]:
            with translating(self.location, "", answered=True):  # the commit has been read
                return await self._asked_page(url)

        return await retry_temporary(once, self.limits.retries + 1, self.limits.retry_seconds)

    async def _asked_page(self, url: str) -> tuple[list[Member], str]:
        async with asyncio.timeout(self.limits.request_seconds):
            async with self.session.request("GET", url) as response:
                data = await self._body(response)
                found = self._decoded(data, list[Member])
                following = response.links["next"].get("url") if "next" in response.links else None
        if following is None:
            return found, ""
        if not is_same_server(URL(self.location.endpoint), URL(str(following))):
            raise no_hub(self.location, f"the next page is at {URL(str(following)).host}")
        return found, str(following)

    async def _json(self, method: str, url: str, kind: type[T], body: bytes | None = None) -> T:
        headers: Mapping[str, str] = {"Content-Type": "application/json"} if body else NO_HEADERS
        async with asyncio.timeout(self.limits.request_seconds):
            async with self.session.request(method, url, headers, body, redirects=True) as response:
                found: T = self._decoded(await self._body(response), kind)
                return found

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        raise_for_hub(response, self.location, self.repository)
        body = bytearray()
        async for data in response.content.iter_chunked(1 << 16):
            body += data
            if len(body) > MAX_PAGE_BYTES:
                raise no_hub(self.location, f"a response of over {MAX_PAGE_BYTES >> 20} MiB")
        return bytes(body)

    def _decoded(self, data: bytes, kind: Any) -> Any:
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.MsgspecError as error:
            raise no_hub(self.location, f"JSON: {error}"[:200]) from error
