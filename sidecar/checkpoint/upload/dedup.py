"""What the newest commit of a lineage holds already: the same bytes are referenced, never sent again.

The newest alone, since it never goes: whoever removes old checkpoints leaves what it lists (`remote.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from podferry.contract.commit import Commit, CommittedFile
from podferry.contract.errors import PermanentError, Unavailable
from podferry.sidecar.checkpoint.commit.committer import Committer

log = structlog.get_logger(__name__)


class DedupIndex:
    """The files of the newest commit.

    Args:
        committer: Knows the lineage.
    """

    def __init__(self, committer: Committer) -> None:
        self._committer, self._reader = committer, committer.reader
        self._newest: Commit | None = None

    async def known(self) -> dict[tuple[int, str], str]:
        """Where bytes lie that are committed, by size and XXH3-128.

        Raises:
            TemporaryError: The store did not answer.
        """
        try:
            await self._look()
        except PermanentError as error:
            log.info("the newest commit cannot be read, so nothing of it is referenced", reason=str(error))
            self._newest = None
        files = self._newest.files if self._newest is not None else ()
        return {(file.size, file.xxh128): file.object for file in files}

    async def still_listed(self, folder: str, files: Iterable[CommittedFile]) -> None:
        """Make sure, just before a commit, that the newest one lists what is referred to.

        Args:
            folder: Where the checkpoint's own objects lie.
            files: All that are to be committed.

        Raises:
            Unavailable: It does not any more: the next try sends what has gone.
        """
        referred = {file.object for file in files if not file.object.startswith(f"{folder}/")}
        if referred - set((await self.known()).values()):
            raise Unavailable.of("data that a checkpoint refers to is listed no more", f"below {folder}")

    async def _look(self) -> None:
        """Take the newest commit in: the committer's, or before it has one, that at the destination."""
        newest = self._committer.log.last
        if not newest:
            newest = max(await self._reader.sequences(), default=0)
        if not newest:
            self._newest = None
        elif self._newest is None or self._newest.sequence != newest:
            self._newest = await self._reader.read(newest)

    async def stands(self, name: str, size: int) -> bool:
        """Whether an object of this lineage is there with that size; what cannot be seen is not relied on.

        Raises:
            TemporaryError: The store did not answer.
        """
        try:
            found = await self._reader.store.stat(name)
        except PermanentError:
            return False
        return found.size == size
