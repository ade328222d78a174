"""Uploads in parts to local files: each part is written at its place in one hidden file beside the target.

The text that names an upload says which file that is and how large the parts are, so that nothing else need
be kept. A part is on the disk before its receipt is given: the receipt is good after a crash of the machine.
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
from podferry.storage.limits import MIB
from podferry.storage.local.files import make_parents, read_exactly, remove_file, sync_directory, write_at
from podferry.storage.multipart import (
    UploadedPart,
    check_part,
    check_part_bytes,
    ordered_parts,
    unknown_upload,
)
from podferry.storage.object_names import checked_name, temporary_name

T = TypeVar("T")
UPLOAD_ID = re.compile(r"([0-9a-f]{16})-([1-9][0-9]{0,15})")
"""The hidden file's token and the size of a part. It comes back from a journal, so it is not trusted."""
COMPARE_BYTES = 4 * MIB
"""Read at once when a whole file is compared: small beside a part, large beside a system call."""

BlockingCall = Callable[[str, Callable[[], Any], str], Awaitable[Any]]
"""Runs blocking work for a name in a thread and translates what it raises; last, what is done to the file."""


class LocalMultipart:
    """Parts of one file.

    Attributes:
        min_part_bytes: A file system takes any size.
        max_parts: Beyond any object; the size of a file is the limit.
    """

    min_part_bytes = 1
    max_parts = 1 << 31

    def __init__(self, call: BlockingCall, location: StoreLocation, root: Path) -> None:
        self._call = call
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
        path, part_bytes = self._hidden(name, upload)
        check_part(self._location.uri / name, number, len(data), part_bytes, self.max_parts)
        start = (number - 1) * part_bytes

        def work() -> int:
            with self._errors(name, upload):
                _send(path, data, start)
            return crc64(data)

        checksum = await _settled(self._call(name, work, "written"))
        return UploadedPart(number, f"{checksum:016x}", checksum, len(data))

    async def complete(self, name: str, upload: str, receipts: Sequence[UploadedPart]) -> None:
        """See `MultipartStore.complete`."""
        path, _ = self._hidden(name, upload)
        whole = object_checksum(ordered_parts(self._location.uri / name, receipts))
        await self._call(name, lambda: self._complete(name, upload, path, whole), "written")

    async def abort(self, name: str, upload: str) -> None:
        """See `MultipartStore.abort`."""
        if UPLOAD_ID.fullmatch(upload):
            path, _ = self._hidden(name, upload)
            await self._call(name, lambda: remove_file(path), "removed")

    def _hidden(self, name: str, upload: str) -> tuple[Path, int]:
        """The hidden file of an upload, and the size of its parts."""
        found = UPLOAD_ID.fullmatch(upload)
        if found is None:
            raise unknown_upload(self._location.uri / checked_name(name), upload)
        return self._root / temporary_name(checked_name(name), found[1]), int(found[2])

    def _begin(self, name: str, token: str) -> None:
        make_parents(self._location, name, self._root / name)
        (self._root / temporary_name(name, token)).open("xb").close()

    def _complete(self, name: str, upload: str, path: Path, whole: ObjectChecksum) -> None:
        target = self._root / name
        if path.exists() or not _is(target, whole):
            make_parents(self._location, name, target)
            with self._errors(name, upload):
                _finish(path, whole, target)
        sync_directory(target.parent)

    @contextmanager
    def _errors(self, name: str, upload: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise unknown_upload(self._location.uri / name, upload) from error
        except OSError as error:
            raise translate(error, self._location, name, "written") from error


async def _settled(call: Awaitable[T]) -> T:
    """Wait for a call, also when cancelled: its thread goes on, and reads from the buffer of who called."""
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


def _finish(path: Path, whole: ObjectChecksum, target: Path) -> None:
    with path.open("r+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size != whole.size:
            raise Corrupt.of(
                f"the parts of {target} do not make the file",
                f"{size} bytes are there; {whole.size} were sent",
                "Give this upload up and begin anew",
            )
        os.fsync(file.fileno())
    path.replace(target)


def _is(path: Path, whole: ObjectChecksum) -> bool:
    """Whether a file holds what was sent."""
    try:
        file = path.open("rb", buffering=0)
    except OSError:
        return False
    with file:
        if os.fstat(file.fileno()).st_size != whole.size:
            return False
        found, buffer = 0, memoryview(bytearray(min(COMPARE_BYTES, whole.size)))
        for start in range(0, whole.size, COMPARE_BYTES):
            view = buffer[: whole.size - start]
            read_exactly(file.fileno(), view, start, str(path))
            found = crc64(view, found)
    return found == whole.crc64
