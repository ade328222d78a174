"""Builds GET requests for one DataNode, which reads what it does not hold from the others.

The NameNode chooses it, and names all that its requests need: its redirection of one file serves for all.
A file is named by its inode: a version that has replaced it under the same name is never read.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from msgspec.structs import replace

from podferry.contract.manifest import Entry
from podferry.storage.network.settings import Network
from podferry.storage.object_names import join
from podferry.storage.request_builder import USER_AGENT_LINE, Address, Origin, request_address
from podferry.storage.webhdfs.client import API

INODES = "/.reserved/.inodes"
"""Source: "HDFS Extended Attributes and reserved paths", and Hadoop's `FSDirectory`."""
REFRESH_SECONDS = 30.0
"""A NameNode that fails over is named by the next redirection; a token in it is valid for hours."""


class DataNodeRequests:
    """See `podferry.storage.request_builder.RequestBuilder`.

    Args:
        key: The store's, before names.
        address: The NameNode's, until a DataNode is known: it redirects, which no pool follows.
        redirect: Where the NameNode redirects a path to.
        network: Trusted certificates and proxies.
    """

    checksum_needs_head = False

    def __init__(
        self, key: str, address: Address, redirect: Callable[[str], Awaitable[str]], network: Network
    ) -> None:
        self._key, self._address, self._redirect, self._network = key, address, redirect, network
        self._query: list[tuple[str, str]] = [("op", "OPEN")]
        self._due = 0.0

    @property
    def origin(self) -> Origin:
        """See `RequestBuilder.origin`. A response to a range is a complete one: the address has the range."""
        return replace(self._address.origin, tag_field="", ranges_in_address=True)

    async def prepare(self, entries: Sequence[Entry]) -> None:
        """See `RequestBuilder.prepare`. A pool keeps its DataNode: only what its requests need changes."""
        if entries and time.monotonic() >= self._due:
            await self.discover(entries[0])

    async def discover(self, entry: Entry) -> None:
        """Ask the NameNode for a DataNode and its parameters, by the redirection of a file."""
        url = await self._redirect(f"/{join(self._key, entry.name)}")
        address = request_address(url.partition("?")[0], self._network)
        if address is None:
            return
        if not self._due:
            self._address = address
        ignored = {"offset", "length"}
        self._query = [pair for pair in parse_qsl(urlsplit(url).query) if pair[0] not in ignored]
        self._due = time.monotonic() + REFRESH_SECONDS

    def build(self, entry: Entry, start: int, length: int, method: str = "GET") -> bytes:
        """See `RequestBuilder.build`."""
        inode = entry.tag.partition("-")[0]
        path = f"{INODES}/{inode}" if inode else f"/{join(self._key, entry.name)}"
        query = urlencode([*self._query, ("offset", str(start)), ("length", str(length))], quote_via=quote)
        lines = f"HTTP/1.1\r\nHost: {self._address.host}\r\n{USER_AGENT_LINE}"
        return f"{method} {API}{quote(path)}?{query} {lines}\r\n".encode("ascii")
