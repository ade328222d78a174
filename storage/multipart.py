"""The interface for multipart uploads: a restarted process sends only the parts that are missing.

Not every store has it: if `Store.multipart` is None, a large object is sent again from its first byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from podferry.contract.errors import Corrupt, InvalidSpec, NotFound, Refused
from podferry.contract.uri import Uri


class UploadedPart(msgspec.Struct, frozen=True):
    """A part that the store has received; the upload is completed with all of them.

    Attributes:
        number: From 1.
        tag: The store's own identifier of the part's content.
        crc64: CRC-64/NVME of the part's bytes, as the sender computed it.
        size: Bytes of the part.
    """

    number: int
    tag: str
    crc64: int
    size: int


class MultipartStore(Protocol):
    """Uploads an object in parts of one size, in any order and in parallel.

    Calls: 1. `begin`; 2. `send` for each part; 3. `complete`, or `abort`. What `begin` returns identifies the
    upload and stays valid when the process restarts. Parts are invisible until `complete`. An upload that is
    neither completed nor aborted stays at the store and costs money: a lifecycle rule of the bucket should
    remove it after some days ("Configuring a bucket lifecycle configuration to delete incomplete multipart
    uploads", Amazon S3). Of several uploads of one name, completing one may make the others unknown (Azure);
    their parts are never mixed.

    Attributes:
        min_part_bytes: Bytes of the smallest part, except the last.
        max_parts: Parts that one object can have.
    """

    min_part_bytes: int
    max_parts: int

    async def begin(self, name: str, part_bytes: int) -> str:
        """Start an upload and return its identifier.

        Args:
            name: Of the object.
            part_bytes: Size of each part except the last, which may be shorter; at least `min_part_bytes`.

        Raises:
            InvalidSpec: The store does not accept parts of this size.
        """

    async def send(self, name: str, upload: str, number: int, data: bytes | memoryview) -> UploadedPart:
        """Send one part, numbered from 1; the store verifies a checksum of it if it can.

        Sending a number again replaces the part. The buffer is not copied: do not change it during the call.

        Raises:
            NotFound: The upload no longer exists: start it again.
            TemporaryError: The same call may succeed later, for example after damaged bytes arrived.
        """

    async def complete(self, name: str, upload: str, parts: Sequence[UploadedPart]) -> None:
        """Create the object from all parts, in the order of their numbers. It replaces an existing object.

        Completing an upload a second time succeeds: the response to the first call may have been lost.

        Raises:
            NotFound: The upload or one of its parts no longer exists, nor does an object made of these parts:
                start the upload again.
            Corrupt: The parts are not numbered 1, 2, 3, and so on, each once.
        """

    async def abort(self, name: str, upload: str) -> None:
        """Delete an upload and its parts; does nothing if it does not exist."""


def part_bytes_for(size: int, preferred: int, store: MultipartStore) -> int:
    """The part size for an object of `size` bytes: as preferred, or larger to stay below `max_parts`."""
    return max(preferred, store.min_part_bytes, -(-size // store.max_parts))


def check_part_bytes(uri: Uri, part_bytes: int, min_part_bytes: int) -> None:
    """Refuse a part size that a store does not accept.

    Raises:
        InvalidSpec: It is smaller than `min_part_bytes`.
    """
    if part_bytes < min_part_bytes:
        measured = f"{part_bytes} bytes; at least {min_part_bytes}"
        raise InvalidSpec.of(f"{uri} does not accept parts this small", measured, "Send larger parts")


def check_part(uri: Uri, number: int, size: int, part_bytes: int, max_parts: int) -> None:
    """Refuse a part that cannot belong to an upload.

    Raises:
        Refused: Its number or its size is outside the limits of the upload.
    """
    if not (1 <= number <= max_parts and 0 < size <= part_bytes):
        measured = f"part {number} of {size} bytes; up to {max_parts} parts of up to {part_bytes} bytes"
        raise Refused.of(f"a part does not fit into the upload of {uri}", measured, "Send larger parts")


def ordered_parts(uri: Uri, parts: Sequence[UploadedPart]) -> list[UploadedPart]:
    """The parts by number. A missing one would create a shorter object, and nobody would notice.

    Raises:
        Corrupt: They are not numbered 1, 2, 3, and so on, each once.
    """
    ordered = sorted(parts, key=lambda part: part.number)
    if not ordered or [part.number for part in ordered] != list(range(1, len(ordered) + 1)):
        last = max((part.number for part in ordered), default=0)
        measured = f"{len(ordered)} receipts for {last} parts"
        raise Corrupt.of(f"parts of {uri} are missing or duplicated", measured, "Send the missing parts")
    return ordered


def unknown_upload(uri: Uri, upload: str, measured: str = "") -> NotFound:
    """The error for an upload that was completed, aborted or removed, or that lacks a part."""
    found = f"upload {upload}; {measured}" if measured else f"upload {upload}"
    return NotFound.of(f"the store no longer knows the upload of {uri}", found, "Start it again")
