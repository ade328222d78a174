"""The file operations that a store in HDFS needs, whatever the protocol."""

from __future__ import annotations

from typing import Protocol

import msgspec

from podferry.contract.manifest import Entry
from podferry.storage.write_body import BodySource


class FileStatus(msgspec.Struct, frozen=True, gc=False):
    """A file or a directory.

    Attributes:
        name: Its last part; empty in the listing of a file.
        size: Bytes; 0 of a directory.
        tag: Changes with the content: HDFS has no other identity of a version than its time and place.
        is_directory: Directories have no content.
    """

    name: str
    size: int
    tag: str
    is_directory: bool

    def entry(self, name: str) -> Entry:
        """The entry of a file under a name."""
        return Entry(name, self.size, self.tag)


class HadoopFiles(Protocol):
    """Operations on absolute paths. Each may raise what `Store` lists."""

    async def status(self, path: str) -> FileStatus:
        """Raises `NotFound` if nothing is there, also below a file."""

    async def list(self, path: str) -> list[FileStatus]:
        """What is directly in a directory, in any order; of a file, the file itself without a name.

        Raises:
            NotFound: Nothing is there.
        """

    async def read(self, path: str, start: int, length: int) -> memoryview:
        """The bytes of a range; fewer if the file ends before.

        Raises:
            NotFound: There is no such file.
        """

    async def create(self, path: str, source: BodySource) -> int:
        """Write a new file, and the directories above it; the number of bytes that were sent."""

    async def rename(self, old: str, new: str, *, replace: bool) -> None:
        """Rename a file in one step of the NameNode.

        Args:
            old: The file.
            new: Its new path.
            replace: Whether a file of that name may be replaced.

        Raises:
            AlreadyExists: The name is taken, and may not be replaced.
        """

    async def delete(self, path: str) -> None:
        """Delete a file; a missing one is ignored."""

    async def close(self) -> None:
        """Close the connections."""
