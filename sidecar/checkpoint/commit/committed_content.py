"""Finds the commit that already has the content of a checkpoint: it need not be committed again.

Otherwise an agent that starts over a directory of old checkpoints would commit them after newer ones. But a
run that has left commits behind, since it started from the beginning or resumed from an earlier one, has to
make its newest checkpoint the newest of all, even if it repeats one of theirs.

A commit that does not stand for the content keeps its folder all the same: what a commit lists is never
written again, damaged or not, and a removal of that commit would take what is written there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import count

from podferry.contract.destination.commit import Commit
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader


@dataclass(frozen=True, slots=True)
class SameContent:
    """What the commits of a lineage have of a content.

    Attributes:
        commit: The commit that stands for it, or None.
        listed: Whether any commit has it.
    """

    commit: Commit | None = None
    listed: bool = False


class CommittedContent:
    """The contents that a lineage's commits have.

    Attributes:
        damaged: Objects that this agent's restore found damaged, or could not verify of a damaged commit:
            nothing that it commits may refer to them.
        abandoned: The sequences of the commits that its run left behind, and of the one that it resumed from:
            one of them stands for what the run saves only while it is the newest of all.
        began_ns: What changed before that was there before the run, in nanoseconds since the epoch.
    """

    def __init__(self, reader: CommitReader) -> None:
        self.damaged: Collection[str] = frozenset()
        self.abandoned, self.began_ns = range(0), 0
        self._reader = reader
        self._folders: set[str] | None = None

    async def find(self, name: str, folder: str, changed_ns: int) -> SameContent:
        """Find the newest commit of the checkpoint `name` with the content that `folder` is named by.

        If another version of the name was committed since, the trainer has returned to this one, now newest.
        `changed_ns` is its last change.
        """
        if not any(_is_for(one, folder) for one in await self._all_folders()):
            return SameContent()
        abandoned, outdated = self.abandoned if changed_ns > self.began_ns else range(0), False
        newest = True
        async for commit in self._reader.newest_first():
            if commit.name == name and _is_for(commit.checkpoint, folder):
                outdated = outdated or (commit.sequence in abandoned and not newest)
                stands = not outdated and await self._is_intact(commit)
                return SameContent(commit if stands else None, listed=True)
            newest, outdated = False, outdated or commit.name == name
        return SameContent()

    async def unused_folder(self, folder: str, agent_id: str, removed: Collection[str]) -> str:
        """A folder for the same content where nothing is, nor is being `removed`: names of objects."""
        folders = await self._all_folders()
        first = f"{folder}-{agent_id[:8]}"
        names = (first if number == 1 else f"{first}-{number}" for number in count(1))
        return next(one for one in names if one not in folders and not is_among(one, removed))

    def add(self, folder: str) -> None:
        """This agent has committed a folder."""
        if self._folders is not None:
            self._folders.add(folder)

    async def _all_folders(self) -> set[str]:
        """Listed once: what other agents commit later, `Committer.commit` finds."""
        if self._folders is None:
            self._folders = {name.rstrip("/") for name in await self._reader.store.children()}
        return self._folders

    async def _is_intact(self, commit: Commit) -> bool:
        """Whether no object of it is known to be damaged, or missing."""
        objects = {file.object for file in commit.files}
        return objects.isdisjoint(self.damaged) and not await self._reader.missing_objects(commit)


def is_among(folder: str, names: Collection[str]) -> bool:
    """Whether any of these names of objects is in a folder."""
    prefix = f"{folder}/"
    return any(name.startswith(prefix) for name in names)


def _is_for(found: str, folder: str) -> bool:
    """Whether a folder is for the content that `folder` is named by: `unused_folder` appends to the name."""
    return found == folder or found.startswith(f"{folder}-")
