"""All commits of a lineage, in little memory: which of them list an object, and how sure each is.

A lineage may have thousands of commits, and a commit thousands of files. So of each commit only hashes of its
objects' names are kept, 8 bytes a file. Two names of one hash would keep an object that nobody needs; they
never remove one.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from podferry.contract.destination.commit import Commit, CommittedFile
from podferry.contract.destination.confidence import confirmation_name
from podferry.contract.destination.kind import Kind
from podferry.contract.destination.series import series_of
from podferry.contract.destination.tombstones import listed_objects
from podferry.contract.errors import NotFound, Unavailable
from podferry.sidecar.checkpoint.commit.commit_history import LOOK_BACK
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.runtime.concurrency import for_each_limited

MAX_LISTINGS = 10
"""How often a lineage is listed again if commits disappear between the listing and their reading."""
CONCURRENT_READS = 16


@dataclass(frozen=True, slots=True)
class IndexedCommit:
    """What is kept of a commit: the record without its files, its kind, hashes of its objects' names."""

    record: Commit
    kind: Kind
    objects: array[int]


class CommitIndex:
    """The commits that existed when `refresh` was called last. Each is read once: commits never change."""

    def __init__(self, reader: CommitReader) -> None:
        self._reader = reader
        self._known: dict[int, IndexedCommit] = {}
        self._confirmed: frozenset[tuple[int, int | None]] = frozenset()

    def add(self, commit: Commit) -> None:
        """Take over a commit that the caller has read or created."""
        hashes = array("q", sorted({hash(name) for name in listed_objects([commit])}))
        self._known[commit.sequence] = IndexedCommit(_without_objects(commit), commit.kind, hashes)

    async def refresh(self, more_than: int = -1) -> bool:
        """List all commits, and read those that are not known, if there are more than `more_than`.

        Returns whether there are. Raises `Corrupt` or `FormatTooNew` if one cannot be read: it may list
        anything.
        """
        for _ in range(MAX_LISTINGS):
            # A confirmation is written after its commit: one that is listed first has a commit, or had one.
            self._confirmed = await self._reader.confirmed()
            numbers = await self._reader.sequences()
            if len(numbers) <= more_than:
                return False
            try:
                unknown = [number for number in numbers if number not in self._known]
                await for_each_limited(unknown, self._read, CONCURRENT_READS)
            except NotFound:
                continue  # a commit was removed after the listing; a newer one may have been created since
            self._known = {number: self._known[number] for number in numbers}
            return True
        what = f"commits of {self._reader.store.lineage} are listed but do not exist"
        raise Unavailable.of(what, f"after {MAX_LISTINGS} listings")

    async def commits(self) -> list[Commit]:
        """All commits with their effective confidence, but without their files; oldest first."""
        rated: list[Commit] = []
        records = [found.record for found in self._known.values()]
        for index, record in enumerate(records):
            before = records[max(index - LOOK_BACK, 0) : index][::-1] if record.confidence is None else []
            commit = await self._reader.rate(record, before, self._confirmed)
            rated.append(msgspec.structs.replace(commit, files=()))
        return rated

    async def by_kind(self) -> list[list[Commit]]:
        """The same, those of each kind apart."""
        commits = await self.commits()
        found = ([one for one in commits if self._known[one.sequence].kind is kind] for kind in Kind)
        return [same for same in found if same]

    def unlisted(self, objects: dict[str, int], removed: Collection[int] = ()) -> dict[str, int]:
        """Those of `objects`, names and bytes, that no commit lists except the `removed` ones, by number."""
        by_hash: dict[int, list[str]] = {}
        for name in objects:
            by_hash.setdefault(hash(name), []).append(name)
        for number, found in self._known.items():
            if number not in removed:
                for listed in found.objects:
                    by_hash.pop(listed, None)
        left = {name for names in by_hash.values() for name in names}
        return {name: size for name, size in objects.items() if name in left}

    def stale_confirmations(self, removed: Collection[int] = ()) -> list[str]:
        """The names of confirmations whose commits do not exist any more; `removed` ones do not."""
        gone = [part for part in self._confirmed if part[0] not in self._known or part[0] in removed]
        return sorted(confirmation_name(*part) for part in gone)

    async def _read(self, number: int) -> None:
        self.add(await self._reader.read(number))


def _without_objects(commit: Commit) -> Commit:
    """The commit without files; one of podferry 0.1 with those that it is compared by."""
    if commit.confidence is not None:
        return msgspec.structs.replace(commit, files=())
    names = [series_of(file.name) for file in commit.files]
    shared = {name: CommittedFile(name, "", 0, "") for name in names}
    return msgspec.structs.replace(commit, files=tuple(shared[name] for name in names))
