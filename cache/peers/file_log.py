"""The news of a holder for the others: which files it fetches from the source, and which ones it has."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping

from podferry.cache.peers.waiting import wait_for
from podferry.contract.cache_api import FileNews
from podferry.contract.manifest import Entry, Manifest

ID_BYTES = 8


class FileLog:
    """A list that only grows.

    Args:
        manifest: What the holder is to have.

    Attributes:
        id: Differs from that of every other log.
        checksums: CRC-64/NVME of the files that the holder has, by name.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.id, self.manifest = secrets.token_hex(ID_BYTES), manifest
        self.checksums: dict[str, int] = {}
        self._entries = {entry.name: entry for entry in manifest.entries}
        self._news: list[FileNews] = []
        self._grown = asyncio.Event()

    def claim(self, entries: Iterable[Entry]) -> None:
        """The holder is about to fetch these files from the source."""
        self._add(map(FileNews, entries))

    def hold(self, checksums: Mapping[str, int]) -> None:
        """The holder has these files, by name, with their checksums."""
        self.checksums.update(checksums)
        self._add(FileNews(self._entries[name], checksum) for name, checksum in checksums.items())

    def held(self, name: str) -> Entry | None:
        """A file that the holder has, or None."""
        return self._entries.get(name) if name in self.checksums else None

    def since(self, log: str, start: int) -> tuple[FileNews, ...]:
        """The news from `start` on of the log with this identifier; all, if it is another one."""
        return tuple(self._news[max(0, start) if log == self.id else 0 :])

    def __len__(self) -> int:
        return len(self._news)

    async def wait(self, log: str, start: int, seconds: float) -> None:
        """Wait until there is something after `start`, or for this long."""
        if log != self.id or len(self) > start:
            return
        await wait_for(self._grown, seconds)

    def _add(self, news: Iterable[FileNews]) -> None:
        self._news.extend(news)
        self._grown.set()
        self._grown = asyncio.Event()
