"""The files of a dataset's versions. All of it blocks.

    ROOT/               the version that is served
    PRIVATE/            records about it
    PRIVATE/next/       the next one: `files`, and the same records
    PRIVATE/old/N/      earlier ones that are still read, the oldest with the lowest number: `files`

What versions have in common are hard links, which take memory once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from podferry.cache.holder.content_checksums import RECORD, read_record, write_record
from podferry.contract.cache_api import HeldDataset
from podferry.contract.manifest import Entry, Manifest
from podferry.contract.tmpfs_cost import allocated_bytes
from podferry.sidecar.staging.file_ops import remove_tree
from podferry.sidecar.staging.ownership_record import RECORD as CLAIM
from podferry.sidecar.staging.ownership_record import (
    OwnershipRecord,
    boot_id,
    read_ownership,
    write_ownership,
)
from podferry.sidecar.staging.stage_writer import DIRECTORY_MODE

FILES = "files"
PRIVATE_MODE = 0o700


class VersionFiles:
    """The directories of one holder.

    Args:
        root: Of the version that is served.
        private: Of the records, on the same file system.
    """

    def __init__(self, root: Path, private: Path) -> None:
        self.root, self._private = root, private
        self.next_private = private / "next"
        self.next_root = self.next_private / FILES
        self._old = private / "old"

    def prepare(self, held: HeldDataset | None, wanted: Manifest) -> None:
        """Begin the next version with what it has in common with the one that is served.

        What an earlier attempt has fetched of this version stays. A file without a tag may have changed
        without notice: it is not taken over.

        Args:
            held: What is served; None for nothing.
            wanted: The next version.
        """
        if read_ownership(self.next_private).digest != wanted.digest:
            self.drop_next()
        self._make(self.next_root)
        names = frozenset(entry.name for entry in wanted.entries)
        write_ownership(self.next_private, OwnershipRecord(wanted.digest, names, boot_id()))
        known = dict(zip(held.manifest.entries, held.checksums, strict=True)) if held else {}
        same = [entry for entry in wanted.entries if entry.tag and entry in known]
        linked = {entry.name: known[entry] for entry in same if self._link(entry)}
        write_record(self.next_private, wanted.digest, linked)

    def _link(self, entry: Entry) -> bool:
        path = self.next_root / entry.name
        self._make(path.parent)
        with suppress(FileExistsError):
            try:
                os.link(self.root / entry.name, path, follow_symlinks=False)
            except FileNotFoundError:
                return False
        return True

    def _make(self, directory: Path) -> None:
        """Make a directory that readers with any user may read, whatever the umask is."""
        if not directory.is_dir():
            self._make(directory.parent)
            directory.mkdir()
            directory.chmod(DIRECTORY_MODE if directory.is_relative_to(self.next_root) else PRIVATE_MODE)

    def other_bytes(self, root: Path) -> int:
        """Bytes, in whole blocks, that the others take and the version in this place does not share."""
        places = (self.root, self.next_root, self._old)
        sizes = dict(found for place in places if place != root for found in _files(place))
        for inode, _ in _files(root):
            sizes.pop(inode, None)
        return allocated_bytes(sizes.values())

    def served_bytes(self) -> int:
        """Bytes, in whole blocks, of what is in place."""
        return allocated_bytes(size for _, size in _files(self.root))

    def drop_next(self) -> None:
        """Remove what there is of the next version."""
        remove_tree(self.next_private)

    def drop_served(self) -> None:
        """Remove the version that is served; what the next one has in common with it stays there."""
        (self._private / RECORD).unlink(missing_ok=True)
        remove_tree(self.root)
        self.root.mkdir()

    def replace(self, number: int) -> None:
        """Serve the next version, which is complete; the one before stays, under this number.

        A kill at any moment leaves both, and `finish` continues.
        """
        if self.next_root.is_dir():
            self._move_served(number)
            self.next_root.rename(self.root)
        for name in (CLAIM, RECORD):  # the record last: it says that the next version is complete
            with suppress(FileNotFoundError):
                (self.next_private / name).replace(self._private / name)
        self.drop_next()

    def _move_served(self, number: int) -> None:
        try:
            self.root.rmdir()  # a holder that starts makes an empty one
        except FileNotFoundError:
            return
        except OSError:  # it has files
            self.old_root(number).parent.mkdir(parents=True, exist_ok=True)
            self.root.rename(self.old_root(number))

    def finish(self, number: int) -> None:
        """Continue a `replace` that was interrupted; nothing happens without one."""
        if read_record(self.next_private).manifest is not None:
            self.replace(number)

    def old_root(self, number: int) -> Path:
        """The files of an earlier version."""
        return self._old / str(number) / FILES

    def old_numbers(self) -> Iterator[int]:
        """The earlier versions that are left."""
        with suppress(FileNotFoundError):
            yield from sorted(int(path.name) for path in self._old.iterdir())

    def remove_old(self, number: int) -> None:
        """Remove an earlier version: what no other one has in common with it is free."""
        remove_tree(self.old_root(number).parent)


def _files(root: Path) -> Iterator[tuple[int, int]]:
    """Inode and size of each file below a directory."""
    for folder, _, names in os.walk(root):
        for name in names:
            found = (Path(folder) / name).lstat()
            yield found.st_ino, found.st_size
