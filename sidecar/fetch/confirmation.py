"""Gives files their names once their store has confirmed that they are of the version that was listed.

Until then a complete file is a partial one: an agent that is killed meanwhile fetches or confirms it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from podferry.contract.manifest import Entry
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.runtime.retry import retry
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.storage.store import Confirm, ConfirmingStore

BATCH_FILES = 500
"""Confirmed, and then renamed, before other tasks get a turn: some 20 ms."""

Publish = Callable[[], None]


class Confirmation:
    """The files of one fetch. Calls: `add` for each file and `end` after the last one, while `run` runs.

    Args:
        store: Confirms.
        stage: Where the files are.
        settings: How often, or for how long, the store is asked.
    """

    def __init__(self, store: ConfirmingStore, stage: StageWriter, settings: PrefetchSettings) -> None:
        self._store, self._stage, self._settings = store, stage, settings
        self._complete: list[tuple[Entry, Publish]] = []
        self._ended = False
        self._wake = asyncio.Event()

    def add(self, entry: Entry, publish: Publish) -> None:
        """All bytes of this object have arrived; `publish` is called when they are confirmed."""
        self._complete.append((entry, publish))
        self._wake.set()

    def end(self) -> None:
        """Nothing is added any more."""
        self._ended = True
        self._wake.set()

    async def run(self) -> None:
        """Confirm and publish, in batches of what arrives meanwhile, until the end.

        Raises:
            Changed, NotFound: An object is not what was listed any more; it is named.
            TemporaryError: The store did not answer, after all attempts.
            Refused: A file cannot be renamed.
        """
        batch = await self._next_batch()
        if batch:
            async with self._store.confirming() as confirm:
                while batch:
                    await self._confirm(confirm, batch)
                    batch = await self._next_batch()

    async def _confirm(self, confirm: Confirm, batch: Sequence[tuple[Entry, Publish]]) -> None:
        entries, settings = [entry for entry, _ in batch], self._settings
        await retry(settings.attempts, partial(confirm, entries), settings.patience_seconds)
        for entry, publish in batch:
            try:
                publish()
            except OSError as error:
                raise self._stage.write_error(entry.name, error) from error

    async def _next_batch(self) -> list[tuple[Entry, Publish]]:
        while not self._complete and not self._ended:
            self._wake.clear()
            await self._wake.wait()
        batch, self._complete = self._complete[:BATCH_FILES], self._complete[BATCH_FILES:]
        return batch
