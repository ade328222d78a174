"""Multipart uploads to local files: each part is written to its offset in a hidden file next to the target.

The identifier of an upload has the hidden file's token and the part size, so nothing else is stored. `send`
returns when the part is on disk: it survives a crash of the machine.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from podferry.contract.errors import Corrupt
from podferry.storage.checksum.checksums import ObjectChecksum, crc64, object_checksum
from podferry.storage.errors.translate import StoreLocation, translate
from podferry.storage.local.files import make_parents, read_exactly, remove_file, sync_directory, write_at
from podferry.storage.multipart import (
    UploadedPart,
    check_part,
    check_part_bytes,
    ordered_parts,
    unknown_upload,
)
from podferry.storage.object_names import checked_name, temporary_name
from podferry.storage.same_names import Writing
from podferry.storage.timeouts_and_limits import MIB

T = TypeVar("T")
UPLOAD_ID = re.compile(r"([0-9a-f]{16})-([1-9][0-9]{0,15})")
"""The hidden file's token and the part size. Journals store it, so it is not trusted."""
COMPARE_BYTES = 4 * MIB
"""Bytes read at a time to compare a file: few compared with a part, many for one system call."""

BlockingCall = Callable[[str, Callable[[], Any], str], Awaitable[Any]]
"""Runs blocking work for a name in a thread and translates its errors; the last argument is the operation."""


class LocalMultipart:
    """Multipart uploads to one directory; a file system accepts parts of any size and number."""

    min_part_bytes = 1
    max_parts = 1 << 31

    def __init__(self, call: BlockingCall, location: StoreLocation, root: Path, writing: Writing) -> None:
        self._call = call
        self._writing = writing
        self._location = location
        self._root = root

    async def begin(self, name: str, part_bytes: int) -> str:
        """See `MultipartStore.begin`."""
        check_part_bytes(self._location.uri / checked_name(name), part_bytes, self.min_part_bytes)
        token = secrets.token_hex(8)
        await self._call(name, lambda: self._begin(name, token), "written")
        return f"{token}-{part_bytes}"

    async def send(self, name: str, upload: str, number: int, data: bytes | memoryview) -> UploadedPart:
        """See `MultipartStore.send`."""
        path, part_bytes = self._hidden_file(name, upload)
        check_part(self._location.uri / name, number, len(data), part_bytes, self.max_parts)
        start = (number - 1) * part_bytes

        def work() -> int:
            with self._errors(name, upload):
                _send(path, data, start)
            return crc64(data)

        checksum = await _wait_even_if_cancelled(self._call(name, work, "written"))
        return UploadedPart(number, f"{checksum:016x}", checksum, len(data))

    async def complete(self, name: str, upload: str, parts: Sequence[UploadedPart]) -> None:
        """See `MultipartStore.complete`."""
        path, _ = self._hidden_file(name, upload)
        expected = object_checksum(ordered_parts(self._location.uri / name, parts))
        async with self._writing(name):
            await self._call(name, lambda: self._complete(name, upload, path, expected), "written")

    async def abort(self, name: str, upload: str) -> None:
        """See `MultipartStore.abort`."""
        if UPLOAD_ID.fullmatch(upload):
            path, _ = self._hidden_file(name, upload)
            await self._call(name, lambda: remove_file(path), "removed")

    def _hidden_file(self, name: str, upload: str) -> tuple[Path, int]:
        """The hidden file of an upload, and the size of its parts."""
        found = UPLOAD_ID.fullmatch(upload)
        if found is None:
            raise unknown_upload(self._location.uri / checked_name(name), upload)
        return self._root / temporary_name(checked_name(name), found[1]), int(found[2])

    def _begin(self, name: str, token: str) -> None:
        make_parents(self._location, name, self._root / name)
        (self._root / temporary_name(name, token)).open("xb").close()

    def _complete(self, name: str, upload: str, path: Path, expected: ObjectChecksum) -> None:
        target = self._root / name
        if path.exists() or not _matches(target, expected):
            make_parents(self._location, name, target)
            with self._errors(name, upload):
                _finish(path, expected, target)
        sync_directory(target.parent)

    @contextmanager
    def _errors(self, name: str, upload: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise unknown_upload(self._location.uri / name, upload) from error
        except OSError as error:
            raise translate(error, self._location, name, "written") from error


async def _wait_even_if_cancelled(call: Awaitable[T]) -> T:
    """Wait for a call even when cancelled: its thread keeps running, and reads from the caller's buffer."""
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _send(path: Path, data: bytes | memoryview, start: int) -> None:
    with path.open("r+b", buffering=0) as file:
        write_at(file.fileno(), data, start)
        os.fsync(file.fileno())


def _finish(path: Path, expected: ObjectChecksum, target: Path) -> None:
    with path.open("r+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size != expected.size:
            what = f"the parts of {target} do not make up the file"
            measured = f"{size} bytes on disk; {expected.size} were sent"
            raise Corrupt.of(what, measured, "Abort this upload and start it again")
        os.fsync(file.fileno())
    path.replace(target)


def _matches(path: Path, expected: ObjectChecksum) -> bool:
    """Whether a file has the expected content."""
    try:
        file = path.open("rb", buffering=0)
    except OSError:
        return False
    with file:
        if os.fstat(file.fileno()).st_size != expected.size:
            return False
        checksum, buffer = 0, memoryview(bytearray(min(COMPARE_BYTES, expected.size)))
        for start in range(0, expected.size, COMPARE_BYTES):
            view = buffer[: expected.size - start]
            read_exactly(file.fileno(), view, start, str(path))
            checksum = crc64(view, checksum)
    return checksum == expected.crc64
