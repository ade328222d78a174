"""A stage that admits nothing but what was committed, and the way to the objects of a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import xxhash

from podferry.contract.commit import CommittedFile
from podferry.contract.errors import Corrupt, Refused
from podferry.contract.manifest import Entry, freeze
from podferry.contract.uri import Uri
from podferry.sidecar.stage import Stage
from podferry.sidecar.sums import RunningSum
from podferry.storage.lane import Lane

FILES = "files"
"""Directory below the one aside in which files have their names; beside it lies whose they are."""


class VerifiedStage(Stage):
    """A stage for the files of one commit: what has its name in it has the commit's checksum."""

    def __init__(self, aside: Path, files: Iterable[CommittedFile], place: Uri) -> None:
        super().__init__(aside / FILES, aside)
        self._wanted = {file.name: file for file in files}
        self._place = place
        self._sums: dict[Path, RunningSum] = {}
        # Checksums as tags: what an earlier call left is kept where this very content is wanted.
        entries = (Entry(file.name, file.size, file.xxh128) for file in self._wanted.values())
        self.manifest = freeze(str(place), entries)

    def prepare(self) -> frozenset[str]:
        """The names that are whole already.

        Raises:
            Refused: Another podferry is at work there, or it cannot be written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            remedy = "Check the directory and its permissions"
            raise Refused.of(f"{self.root} cannot be made", str(error), remedy) from error
        return self.claim(self.manifest)

    def grow(self, number: int) -> Path:
        """See `Stage.grow`."""
        path = super().grow(number)
        self._sums[path] = RunningSum()
        return path

    def write(self, path: Path, data: memoryview, start: int) -> None:
        """See `Stage.write`."""
        super().write(path, data, start)
        self._sums[path].written(path, start, data)

    def admit(self, path: Path, entry: Entry) -> None:
        """See `Stage.admit`.

        Raises:
            Corrupt: Its content is not what was committed.
        """
        self._check(entry.name, self._sums.pop(path).hexdigest())
        super().admit(path, entry)

    def put(self, number: int, data: memoryview, entry: Entry) -> None:
        """See `Stage.put`.

        Raises:
            Corrupt: Its content is not what was committed.
        """
        self._check(entry.name, xxhash.xxh3_128_hexdigest(data))
        super().put(number, data, entry)

    def _check(self, name: str, found: str) -> None:
        file = self._wanted[name]
        if found != file.xxh128:
            measured = f"xxh128 {found}, the commit says {file.xxh128}"
            raise Corrupt.of(f"{self._place / file.object} is damaged", measured)


class CommittedLane:
    """Fetches what lies under another name at the destination than in the checkpoint directory."""

    def __init__(self, lane: Lane, objects: Mapping[str, Entry], came: Callable[[int], None]) -> None:
        self._lane = lane
        self._objects = objects
        self._came = came

    async def fetch(self, entry: Entry, start: int, length: int) -> memoryview:
        """See `Lane.fetch`."""
        data = await self._lane.fetch(self._objects[entry.name], start, length)
        self._came(len(data))
        return data
