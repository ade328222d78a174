"""What an fsspec file system is asked for, as calls that block: writing and deleting.

Object stores take a write whole. Elsewhere it goes into a temporary file and is renamed. Where renaming
refuses a name that is taken, the old file is deleted first: a reader may then find nothing for a moment.
"""

from __future__ import annotations

from contextlib import suppress

from podferry.contract.errors import AlreadyExists, FerryError
from podferry.storage.errors.translate import store_error
from podferry.storage.fsspec.options import EXCLUSIVE_CREATE_SCHEMES, OBJECT_STORE_SCHEMES
from podferry.storage.fsspec.reads import FsspecReads
from podferry.storage.limits import Limits
from podferry.storage.object_names import temporary_name
from podferry.storage.write_body import BodySource, as_bytes


class FsspecWrites:
    """Blocks; raises what the file system raises, and our own errors.

    Attributes:
        exclusive: Whether the file system itself refuses to create what exists.
    """

    def __init__(self, calls: FsspecReads, limits: Limits) -> None:
        self.exclusive = calls.uri.scheme in EXCLUSIVE_CREATE_SCHEMES
        self._calls, self._limits = calls, limits

    def create(self, name: str, source: BodySource) -> None:
        """Write what must not exist yet.

        Raises:
            AlreadyExists: It does.
        """
        if self.exclusive:
            data = _collect(source)
            try:
                self._calls.fs.pipe_file(self._calls.path(name), data, mode="create")
            except FileExistsError:
                raise self._exists(name) from None
            except OSError:
                # MinIO's refusal reaches s3fs's callers as an error without a meaning of its own.
                with suppress(FerryError, OSError):
                    if self._calls.stat(name).size != len(data):
                        raise self._exists(name) from None
                raise
            return
        if self._calls.fs.exists(self._calls.path(name)):
            raise self._exists(name)
        self.overwrite(name, source)

    def _exists(self, name: str) -> AlreadyExists:
        error = store_error("exists", self._calls.location, name)
        return AlreadyExists(*error.problems)

    def overwrite(self, name: str, source: BodySource) -> None:
        """Write, whatever is there."""
        if self._calls.uri.scheme in OBJECT_STORE_SCHEMES:
            self._put(self._calls.path(name), source)
            return
        temporary = self._calls.path(temporary_name(name))
        self._calls.fs.makedirs(temporary.rpartition("/")[0] or "/", exist_ok=True)
        try:
            with self._calls.fs.open(temporary, "wb") as file:
                while part := source.next_part():
                    file.write(part)
            self._rename(temporary, self._calls.path(name))
        except BaseException:
            with suppress(Exception):  # it may never have come to be; the first error is the one that counts
                self._calls.fs.rm_file(temporary)
            raise

    def _put(self, path: str, source: BodySource) -> None:
        first = source.next_part()
        if len(first) < self._limits.part_bytes:
            self._calls.fs.pipe_file(path, first)
            return
        file = self._calls.fs.open(path, "wb", block_size=self._limits.part_bytes, autocommit=False)
        try:
            while first:
                file.write(first)
                first = source.next_part()
            file.close()
            file.commit()
        except BaseException:
            with suppress(Exception):  # the first error is the one that counts
                file.discard()
            file.closed = True  # else its finalizer uploads what it holds
            raise

    def _rename(self, old: str, new: str) -> None:
        try:
            self._calls.fs.mv(old, new)
        except Exception:  # each file system refuses a taken name in its own way
            if not self._calls.fs.exists(new):
                raise
            self._calls.fs.rm_file(new)
            self._calls.fs.mv(old, new)

    def delete(self, name: str) -> None:
        """Delete, where it is there."""
        try:
            if self._calls.uri.scheme in OBJECT_STORE_SCHEMES or self._calls.fs.exists(
                self._calls.path(name)
            ):
                self._calls.fs.rm_file(self._calls.path(name))
        except FileNotFoundError:
            if self._calls.bucket_missing():
                raise


def _collect(source: BodySource) -> bytes:
    return as_bytes(iter(source.next_part, b""))
