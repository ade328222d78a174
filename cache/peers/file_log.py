"""The news of a holder for the others: which parts it fetches from the source, and which ones it has."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping

from podferry.cache.peers.waiting import wait_for
from podferry.contract.cache_api import PartNews
from podferry.contract.file_part import FilePart, parts_of, parts_within
from podferry.contract.manifest import Entry, Manifest
from podferry.storage.checksum.checksums import ChecksumKind, combine_crcs

ID_BYTES = 8


class FileLog:
    """A list that only grows.

    Args:
        manifest: What the holder is to have.

    Attributes:
        id: Differs from that of every other log.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.id, self.manifest = secrets.token_hex(ID_BYTES), manifest
        self._entries = {entry.name: entry for entry in manifest.entries}
        self._held: dict[FilePart, int] = {}
        self._news: list[PartNews] = []
        self._grown = asyncio.Event()

    def claim(self, parts: Iterable[FilePart]) -> None:
        """The holder is about to fetch these from the source."""
        self._add(map(PartNews, parts))

    def hold(self, checksums: Mapping[FilePart, int]) -> None:
        """The holder has these, with their CRC-64/NVME."""
        self._held.update(checksums)
        self._add(PartNews(part, checksum) for part, checksum in checksums.items())

    def held(self, name: str, start: int = 0, length: int | None = None) -> Entry | None:
        """A file of which the holder has these bytes, by default all, or None."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        parts = parts_of(entry) if length is None else parts_within(entry, start, length)
        return entry if all(part in self._held for part in parts) else None

    def knows(self, name: str) -> Entry | None:
        """A file of the manifest, or None."""
        return self._entries.get(name)

    def checksums(self) -> dict[str, int]:
        """CRC-64/NVME of the files that the holder has, by name."""
        return {name: self._checksum(entry) for name, entry in self._entries.items() if self.held(name)}

    def _checksum(self, entry: Entry) -> int:
        value = 0
        for part in parts_of(entry):
            value = combine_crcs(ChecksumKind.CRC64NVME, value, self._held[part], part.length)
        return value

    def since(self, log: str, start: int) -> tuple[PartNews, ...]:
        """The news from `start` on of the log with this identifier; all, if it is another one."""
        return tuple(self._news[max(0, start) if log == self.id else 0 :])

    def __len__(self) -> int:
        return len(self._news)

    async def wait(self, log: str, start: int, seconds: float) -> None:
        """Wait until there is something after `start`, or for this long."""
        if log != self.id or len(self) > start:
            return
        await wait_for(self._grown, seconds)

    def _add(self, news: Iterable[PartNews]) -> None:
        self._news.extend(news)
        self._grown.set()
        self._grown = asyncio.Event()
