"""Writes the object that makes a checkpoint real."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import msgspec
import stamina
import structlog

from podferry.contract.commit import (
    FORMAT,
    LATEST,
    PRIVATE,
    Commit,
    CommittedFile,
    commit_name,
    encode_commit,
    step_of,
)
from podferry.contract.errors import AlreadyExists, Corrupt, FerryError, NotFound, TemporaryError
from podferry.sidecar.catalogue import Catalogue
from podferry.storage.store import Body, WriteMode

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Author:
    """Who commits.

    Attributes:
        writer: Unique to one life of an agent.
        world: How many pods write a checkpoint together.
        run: KFP's run id, None outside KFP.
    """

    writer: str
    world: int = 1
    run: str | None = None


class Committer:
    """The commits of one lineage, by one writer.

    Sequence numbers have no gaps and each is created conditionally, so of two writers that commit at once
    one finds its number taken and goes on to the next. Where the store cannot create atomically
    (`Store.exclusive_create`), the number is checked before it is written and read back after.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        lineage: str,
        author: Author,
        now: Callable[[], datetime],
        attempts: int = 3,
    ) -> None:
        self.catalogue = catalogue
        self._store = catalogue.store
        self._lineage = lineage
        self._author = author
        self._now = now
        self._attempts = attempts
        self._last: int | None = None
        self._folders: set[str] | None = None

    def path(self, name: str) -> str:
        """A name of the lineage as the store knows it."""
        return f"{self._lineage}/{name}"

    async def write(self, name: str, body: Body) -> None:
        """Write an object of the lineage."""
        await self._store.write(self.path(name), body)

    async def earlier(self, folder: str) -> Commit | None:
        """The commit that already made this very content real, if any: it is not committed again.

        Else an agent that starts over a directory of old checkpoints would commit them after newer ones.
        """
        if self._folders is None:
            self._folders = {name.rstrip("/") for name in await self._store.children(self._lineage)}
        if folder not in self._folders:
            return None
        async for commit in self.catalogue.newest_first(self._lineage):
            if commit.checkpoint == folder:
                # Somebody may have removed its objects since: then it is sent and committed anew.
                return None if await self.catalogue.flaws(commit) else commit
        return None

    async def announce(self) -> None:
        """Write who writes here now: finds out before training starts whether the destination takes it.

        Raises:
            AccessDenied, BucketNotFound: It does not.
        """
        note = {"writer": self._author.writer, "since": self._now(), "run": self._author.run}
        await self._store.write(self.path(f"{PRIVATE}/writer.json"), msgspec.json.encode(note))

    async def commit(self, name: str, folder: str, files: tuple[CommittedFile, ...]) -> Commit:
        """Make a checkpoint real whose files have all been sent.

        Raises:
            FerryError: The store's, after the attempts are spent. The checkpoint is then not committed, or
                is and nobody knows; committing the same content once more is harmless.
        """
        if self._last is None:
            self._last = max(await self.catalogue.sequences(self._lineage), default=0)
        commit = Commit(
            format=FORMAT,
            sequence=self._last + 1,
            lineage=self._lineage,
            checkpoint=folder,
            name=name,
            step=step_of(name),
            created=self._now(),
            files=files,
            writer=self._author.writer,
            world=self._author.world,
            run=self._author.run,
        )
        while (standing := await self._create(commit)) is None:
            commit = msgspec.structs.replace(commit, sequence=commit.sequence + 1)
        self._last = standing.sequence
        if self._folders is not None:
            self._folders.add(folder)
        await self._hint(standing)
        return standing

    async def _create(self, commit: Commit) -> Commit | None:
        """The commit of this content that stands under this number; None where another's does."""
        name = self.path(commit_name(commit.sequence))
        try:
            async for attempt in stamina.retry_context(
                on=TemporaryError, attempts=self._attempts, timeout=None
            ):
                with attempt:
                    await self._store.write(name, encode_commit(commit), WriteMode.CREATE)
        except AlreadyExists:
            return await self._standing(commit)
        return commit if self._store.exclusive_create else await self._standing(commit)

    async def _standing(self, commit: Commit) -> Commit | None:
        """What stands under a number that is taken, where it makes the same content real.

        It is ours, where the store created it and the answer was lost, in this try or in an earlier one
        that had another time on it.
        """
        try:
            found = await self.catalogue.read(self._lineage, commit.sequence)
        except (Corrupt, NotFound) as error:
            log.warning("a number is taken by no commit", sequence=commit.sequence, reason=str(error))
            return None
        return found if (found.checkpoint, found.files) == (commit.checkpoint, commit.files) else None

    async def _hint(self, commit: Commit) -> None:
        try:
            await self._store.write(self.path(LATEST), encode_commit(commit))
        except FerryError as error:
            log.warning("latest.json was not updated; commits are the truth", reason=str(error))
