"""What is durable, read from the store itself: the commits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from demo.failure import DemoError
from podferry.contract.destination.commit import Commit
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig

PAUSE = 0.05
"""Seconds between two looks."""


class Ledger:
    """The commits at a destination."""

    def __init__(self, uri: str, environ: Mapping[str, str]) -> None:
        self._uri = parse_uri(uri)
        self._config = StoreConfig(credentials=environ)

    def commits(self, lineage: str) -> list[Commit]:
        """A lineage's commits, oldest first."""
        return asyncio.run(self._commits(lineage))

    def wait(self, lineage: str, count: int, seconds: float) -> int:
        """Wait until at least `count` checkpoints are durable; how many are.

        Raises:
            DemoError: They are not within `seconds`.
        """
        deadline = time.monotonic() + seconds
        while (found := asyncio.run(self._count(lineage))) < count:
            if time.monotonic() > deadline:
                raise DemoError(f"only {found} of {count} checkpoints became durable within {seconds:.0f} s")
            time.sleep(PAUSE)
        return found

    async def _commits(self, lineage: str) -> list[Commit]:
        store = open_store(self._uri, self._config)
        try:
            reader = CommitReader(LineageStore(store, lineage))
            found = [commit async for commit in reader.newest_first()]
        finally:
            await store.close()
        return found[::-1]

    async def _count(self, lineage: str) -> int:
        store = open_store(self._uri, self._config)
        try:
            return len(await CommitReader(LineageStore(store, lineage)).sequences())
        finally:
            await store.close()
