"""Blocking calls to an fsspec file system: writing and deleting.

Object stores write atomically. Other file systems write a temporary file and rename it. If renaming fails
because the name is taken, the old file is deleted first: for a moment readers find none.
"""

from __future__ import annotations

from contextlib import suppress

from podferry.contract.errors import FerryError
from podferry.storage.errors.translate import store_error
from podferry.storage.fsspec.options import EXCLUSIVE_CREATE_SCHEMES, OBJECT_STORE_SCHEMES
from podferry.storage.fsspec.reads import FsspecReads
from podferry.storage.object_names import temporary_name
from podferry.storage.timeouts_and_limits import Limits
from podferry.storage.write_body import BodySource, as_bytes


class FsspecWrites:
    """Calls block; they raise the file system's errors and our own.

    Attributes:
        exclusive: Whether the file system itself refuses to create an existing file.
    """

    def __init__(self, reads: FsspecReads, limits: Limits) -> None:
        self.exclusive = reads.uri.scheme in EXCLUSIVE_CREATE_SCHEMES
        self._reads, self._limits = reads, limits

    def create(self, name: str, source: BodySource) -> None:
        """Write a file that must not exist yet.

        Raises:
            AlreadyExists: It exists.
        """
        if self.exclusive:
            data = as_bytes(iter(source.next_part, b""))
            try:
                self._reads.file_system.pipe_file(self._reads.path(name), data, mode="create")
            except FileExistsError:
                raise self._exists(name) from None
            except OSError:
                # s3fs turns MinIO's refusal into an unspecific error.
                size = len(data)
                with suppress(FerryError, OSError):
                    size = self._reads.stat(name).size
                if size != len(data):
                    raise self._exists(name) from None
                raise
            return
        if self._reads.file_system.exists(self._reads.path(name)):
            raise self._exists(name)
        self.overwrite(name, source)

    def _exists(self, name: str) -> FerryError:
        return store_error("exists", self._reads.location, name)

    def overwrite(self, name: str, source: BodySource) -> None:
        """Write a file, replacing an existing one."""
        if self._reads.uri.scheme in OBJECT_STORE_SCHEMES:
            self._put(self._reads.path(name), source)
            return
        temporary = self._reads.path(temporary_name(name))
        self._reads.file_system.makedirs(temporary.rpartition("/")[0] or "/", exist_ok=True)
        try:
            with self._reads.file_system.open(temporary, "wb") as file:
                while part := source.next_part():
                    file.write(part)
            self._rename(temporary, self._reads.path(name))
        except BaseException:
            with suppress(Exception):  # it may not exist; the first error counts
                self._reads.file_system.rm_file(temporary)
            raise

    def _put(self, path: str, source: BodySource) -> None:
        first = source.next_part()
        if len(first) < self._limits.part_bytes:
            self._reads.file_system.pipe_file(path, first)
            return
        file = self._reads.file_system.open(path, "wb", block_size=self._limits.part_bytes, autocommit=False)
        try:
            while first:
                file.write(first)
                first = source.next_part()
            file.close()
            file.commit()
        except BaseException:
            with suppress(Exception):  # the first error counts
                file.discard()
            file.closed = True  # otherwise its finalizer uploads its buffer
            raise

    def _rename(self, old: str, new: str) -> None:
        try:
            self._reads.file_system.mv(old, new)
        except Exception:  # file systems differ in how they refuse a taken name
            if not self._reads.file_system.exists(new):
                raise
            self._reads.file_system.rm_file(new)
            self._reads.file_system.mv(old, new)

    def delete(self, name: str) -> None:
        """Delete a file if it exists."""
        try:
            if self._reads.uri.scheme in OBJECT_STORE_SCHEMES or self._reads.file_system.exists(
                self._reads.path(name)
            ):
                self._reads.file_system.rm_file(self._reads.path(name))
        except FileNotFoundError:
            if self._reads.is_bucket_missing():
                raise
