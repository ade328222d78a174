"""A stage for the files of one commit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from podferry.contract.commit import CommittedFile
from podferry.contract.errors import Refused
from podferry.contract.manifest import Entry, freeze
from podferry.contract.uri import Uri
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.checksum.checksums import Checksum, ChecksumKind

FILES = "files"
"""Directory below the one aside in which files have their names; beside it lies whose they are."""


class VerifiedStaging(StagingDir):
    """A stage whose manifest has the commit's checksums for tags."""

    def __init__(self, aside: Path, files: Iterable[CommittedFile], place: Uri) -> None:
        super().__init__(aside / FILES, aside)
        # Checksums as tags: what an earlier call left is kept where this very content is wanted.
        entries = (Entry(file.name, file.size, file.xxh128) for file in files)
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


def committed_checksum(file: Entry) -> Checksum:
    """What a file of such a manifest must add up to."""
    return Checksum(ChecksumKind.XXH128, bytes.fromhex(file.tag))
