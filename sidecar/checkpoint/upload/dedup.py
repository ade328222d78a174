"""Finds bytes that the newest commit of a lineage already has: they are referenced and not sent again.

Only the newest commit counts: the garbage collector never removes what it lists. What this agent's restore
has found damaged does not count.
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from podferry.contract.destination.commit import Commit, CommittedFile
from podferry.contract.errors import PermanentError, Unavailable
from podferry.sidecar.checkpoint.commit.committer import Committer

log = structlog.get_logger(__name__)


class DedupIndex:
    """The files of the newest commit."""

    def __init__(self, committer: Committer) -> None:
        self._committer, self._reader = committer, committer.reader
        self._newest: Commit | None = None

    async def known(self) -> dict[tuple[int, str], str]:
        """The objects of committed files, by size and XXH3-128, without those that are known to be damaged.

        Raises:
            TemporaryError: The store did not answer.
        """
        try:
            await self._update()
        except PermanentError as error:
            log.info("the newest commit cannot be read: nothing of it is referenced", reason=str(error))
            self._newest = None
        files = self._newest.files if self._newest is not None else ()
        damaged = self._committer.content.damaged
        return {(file.size, file.xxh128): file.object for file in files if file.object not in damaged}

    async def check_still_referenced(self, folder: str, files: Iterable[CommittedFile]) -> None:
        """Check, just before a commit, that the newest one still lists what `files` use outside `folder`.

        Raises:
            Unavailable: It does not: the next attempt sends what is gone.
        """
        referenced = {file.object for file in files if not file.object.startswith(f"{folder}/")}
        if referenced - set((await self.known()).values()):
            what = "data that a checkpoint references is no longer committed"
            raise Unavailable.of(what, f"below {folder}")

    async def _update(self) -> None:
        """Read the newest commit: the committer's or, before it has one, the destination's."""
        newest = self._committer.log.last or max(await self._reader.sequences(), default=0)
        if not newest:
            self._newest = None
        elif self._newest is None or self._newest.sequence != newest:
            self._newest = await self._reader.read(newest)

    async def exists(self, name: str, size: int) -> bool:
        """Whether an object of this lineage exists with that size; False if it is damaged or cannot be read.

        Raises:
            TemporaryError: The store did not answer.
        """
        if name in self._committer.content.damaged:
            return False
        try:
            found = await self._reader.store.stat(name)
        except PermanentError:
            return False
        return found.size == size
