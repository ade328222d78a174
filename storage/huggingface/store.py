"""A directory of a repository of the Hugging Face Hub, at the commit of its revision at the first call."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from podferry.contract.errors import Corrupt, InvalidSpec, NotFound
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.credentials.endpoints import checked_endpoint
from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.errors.translate import (
    check_listed,
    store_error,
    store_location,
    too_short,
    translating,
    unused_keys,
)
from podferry.storage.http.session import RangeReader, WebSession
from podferry.storage.huggingface.hub import Hub, Member
from podferry.storage.huggingface.repository import repository_of
from podferry.storage.object_names import checked_name, join
from podferry.storage.store import Body, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import LIMITS, Limits

T = TypeVar("T")
ENDPOINT = "https://huggingface.co"
TAG_FIELDS = ("X-Linked-Etag", "ETag")
"""The first one is that of a large file, in the redirection to where it is stored."""
TOKEN_KEYS = ("HF_TOKEN", "token")
SHA256_DIGITS = 64
"""Hexadecimal digits; Git's identity of a file has 40."""


def hub_endpoint(config: StoreConfig) -> str:
    """URL of the Hub. Raises `InvalidSpec` for one that is none."""
    return checked_endpoint(config.endpoint or config.credentials.get("HF_ENDPOINT") or ENDPOINT)


class HuggingFaceStore:
    """See `podferry.storage.store.Store`; read only."""

    exclusive_create = False
    multipart = None
    server_copy = None
    request_builder = None

    def __init__(self, uri: Uri, config: StoreConfig, limits: Limits = LIMITS) -> None:
        self.uri, self._config, self._limits = uri, config, limits
        variables, endpoint = config.credentials, hub_endpoint(config)
        names = tuple(name for name in TOKEN_KEYS if variables.get(name))
        unused = unused_keys(config.credentials, (*names, "HF_ENDPOINT"), config.reload_credentials)
        self._location = store_location(uri, endpoint, names, config.network, unused)
        headers = RefreshedValue(self._headers, lasting=config.reload_credentials is None)
        self._session = WebSession(endpoint, config.network, limits, headers)
        self._commit: str | None = None
        self._pinning = asyncio.Lock()
        self._answered = False

    def _headers(self) -> Mapping[str, str]:
        reload = self._config.reload_credentials
        variables = reload() if reload else self._config.credentials
        token = next((variables[name] for name in TOKEN_KEYS if variables.get(name)), "").strip()
        if not token.isascii() or not token.isprintable():
            raise InvalidSpec.of("HF_TOKEN has characters that cannot be sent", "", "Store the token alone")
        return {"Authorization": f"Bearer {token}"} if token else {}

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. All pages are of one commit."""
        hub, commit = await self._pinned()
        top = join(hub.repository.path, prefix)
        with translating(self._location, prefix, answered=self._answered):
            try:
                async for member in hub.tree(commit, top, recursive=True):
                    if member.type == "file":
                        yield self._entry(hub, member)
            except NotFound:
                return

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`."""
        hub, commit = await self._pinned()
        top = join(hub.repository.path, prefix)
        with translating(self._location, prefix, answered=self._answered):
            try:
                found = [member async for member in hub.tree(commit, top, recursive=False)]
            except NotFound:
                return []
        names = [member.path + ("/" if member.type == "directory" else "") for member in found]
        return sorted(name.removeprefix(f"{top}/" if top else "") for name in names)

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        checked_name(name)
        if repository_of(self.uri / name).path == "":  # the repository itself; `self` is above it
            raise store_error("missing", self._location, name, "a repository")
        hub, commit = await self._pinned()
        path = join(hub.repository.path, name)
        member = await self._call(name, lambda: hub.find(commit, path))
        if member is None or member.type != "file":
            raise store_error("missing", self._location, name, f"commit {commit[:12]}")
        return self._entry(hub, member)

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`. A complete file is compared with its checksum."""
        checked_name(name)
        known = None
        if not tag or size is None or length == 0 or (start and length is None):
            known = await self.stat(name)
            check_listed(self._location, known, tag, size)
            if start + (length or 0) > known.size:
                raise too_short(self._location, name, start, length, f"{known.size} bytes")
            length = known.size - start if length is None else length
        if length == 0:
            return memoryview(b"")
        expected = known or Entry(name, size or 0, tag)
        return memoryview(await self._call(name, lambda: self._range(expected, start, length)))

    async def _range(self, expected: Entry, start: int, length: int | None) -> bytes:
        hub, commit = await self._pinned()
        complete = start == 0 and length in {None, expected.size}
        reader = RangeReader(self._session, self._location, TAG_FIELDS)
        url = hub.file_url(commit, join(hub.repository.path, expected.name))
        found = await reader.read(expected.name, url, start, None if complete else length)
        tag = found.tag.removeprefix("W/").strip('"')
        if tag != expected.tag or found.size not in {None, expected.size}:
            check_listed(self._location, await self.stat(expected.name), expected.tag, expected.size)
            check_listed(self._location, Entry(expected.name, found.size or 0), "", expected.size)
        if complete:
            self._check_content(expected, found.data)
        return found.data

    def _check_content(self, expected: Entry, data: bytes) -> None:
        """Compare a complete file with what the Hub states: its SHA-256, or Git's identity."""
        if len(expected.tag) == SHA256_DIGITS:
            digest = hashlib.sha256(data)
        else:
            digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
            digest.update(data)
        if digest.hexdigest() != expected.tag:
            what = f"the bytes of {self.uri / expected.name} do not match their checksum"
            raise Corrupt.of(what, f"{digest.hexdigest()}, {expected.tag} is stated", "Check what is between")

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """Raises `InvalidSpec`: repositories are only read."""
        raise store_error("unsupported", self._location, checked_name(name), "hf:// is read only")

    async def delete(self, names: Iterable[str]) -> None:
        """Raises `InvalidSpec`: repositories are only read."""
        raise store_error("unsupported", self._location, "", "hf:// is read only")

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def _pinned(self) -> tuple[Hub, str]:
        """The repository and its commit."""
        hub = Hub(repository_of(self.uri), self._session, self._location, self._limits)
        async with self._pinning:
            if self._commit is None:
                self._commit = await self._call("", hub.commit)
        return hub, self._commit

    def _entry(self, hub: Hub, member: Member) -> Entry:
        top = f"{hub.repository.path}/" if hub.repository.path else ""
        return Entry(member.path.removeprefix(top), member.entry.size, member.entry.tag)

    async def _call(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        with translating(self._location, name, answered=self._answered):
            async with asyncio.timeout(self._limits.request_seconds):
                found = await work()
        self._answered = True
        return found
