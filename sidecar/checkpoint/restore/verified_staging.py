"""The staging directory of a restore: files that are verified by the commit's checksums."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from podferry.contract.destination.commit import CommittedFile
from podferry.contract.errors import Refused
from podferry.contract.manifest import Entry, freeze
from podferry.contract.uri import Uri
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.checksum.checksums import Checksum, ChecksumKind

FILES_DIR = "files"
"""Directory below the staging directory that holds the files; the ownership record is next to it."""


class VerifiedStaging(StagingDir):
    """A staging directory whose manifest has the commit's checksums as tags."""

    def __init__(self, staging: Path, files: Iterable[CommittedFile], uri: Uri) -> None:
        super().__init__(staging / FILES_DIR, staging)
        # Checksums as tags: what an earlier call left is kept only if it has exactly this content.
        entries = (Entry(file.name, file.size, file.xxh128) for file in files)
        self.manifest = freeze(str(uri), entries)

    def prepare(self) -> frozenset[str]:
        """Create and claim the directory; returns the names of the files that are already complete.

        Raises `Refused` if another podferry uses it, or it cannot be written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            remedy = "Check the directory and its permissions"
            raise Refused.of(f"{self.root} cannot be created", str(error), remedy) from error
        return self.claim(self.manifest)


def committed_checksum(file: Entry) -> Checksum:
    """The checksum that a file of such a manifest must have."""
    return Checksum(ChecksumKind.XXH128, bytes.fromhex(file.tag))
