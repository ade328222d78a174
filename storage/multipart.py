"""Objects that are written in parts, so that a process that starts again sends only what is missing.

Not every store can: `Store.multipart` is None where it cannot, and a large object is then sent again from its
first byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from podferry.contract.errors import Corrupt, InvalidSpec, NotFound, Refused
from podferry.contract.uri import Uri


class UploadedPart(msgspec.Struct, frozen=True):
    """What a store answers to a part: it is needed to complete the object.

    Attributes:
        number: The part's, from 1.
        tag: The store's own name of what it holds.
        crc64: CRC-64/NVME of the part's bytes, as the sender computed it.
        size: Bytes of the part.
    """

    number: int
    tag: str
    crc64: int
    size: int


class MultipartStore(Protocol):
    """Writes one object in parts of one size, in any order and concurrently.

    An upload is known by the text that `begin` gives, which stays good over restarts of the process. What was
    sent is invisible until `complete`. Uploads that nobody completes or aborts stay at the store, and cost:
    a rule of the bucket's lifecycle that ends incomplete uploads after some days is the net below this one
    ("Configuring a bucket lifecycle configuration to delete incomplete multipart uploads", Amazon S3).

    Attributes:
        min_part_bytes: Bytes of the smallest part but the last.
        max_parts: How many parts an object may have.
    """

    min_part_bytes: int
    max_parts: int

    async def begin(self, name: str, part_bytes: int) -> str:
        """Begin an upload; what names it from now on.

        Args:
            name: The object's.
            part_bytes: Size of each part but the last, which may be shorter; at least `least`.

        Raises:
            InvalidSpec: The store takes no parts of this size.
        """

    async def send(self, name: str, upload: str, number: int, data: bytes | memoryview) -> UploadedPart:
        """Send one part, from 1, verified on arrival by a checksum where the store can.

        Sending a number again replaces what was sent under it. The buffer must not change before the call
        ends; no copy of it is made.

        Raises:
            NotFound: The upload is no longer known: begin anew.
            TemporaryError: The same call may succeed later; bytes that arrived damaged are one such case.
        """

    async def complete(self, name: str, upload: str, receipts: Sequence[UploadedPart]) -> None:
        """Make the object visible, as a whole: all parts in the order of their numbers; it replaces another.

        Completing once more what an earlier call has completed, and whose answer was lost, succeeds.

        Raises:
            NotFound: The upload or a part of it is no longer known, and no such object came of it: begin
                anew.
            Corrupt: The receipts are not those of parts 1, 2, 3, and so on, each once.
        """

    async def abort(self, name: str, upload: str) -> None:
        """Give up an upload and what was sent; one that is not known is passed over."""


def part_bytes_for(size: int, wished: int, parts: MultipartStore) -> int:
    """Bytes of a part of an object of `size` bytes: as wished, or more where there would be too many."""
    return max(wished, parts.min_part_bytes, -(-size // parts.max_parts))


def check_begin(uri: Uri, part_bytes: int, least: int) -> None:
    """Refuse a size of parts that a store does not take.

    Raises:
        InvalidSpec: It is smaller than `least`.
    """
    if part_bytes < least:
        raise InvalidSpec.of(
            f"{uri} takes no parts that small", f"{part_bytes} bytes; at least {least}", "Send larger parts"
        )


def check_part(uri: Uri, number: int, size: int, part_bytes: int, most: int) -> None:
    """Refuse a part that cannot belong to an upload.

    Raises:
        Refused: Its number or its size is beyond what the upload was begun for.
    """
    if not (1 <= number <= most and 0 < size <= part_bytes):
        measured = f"part {number} of {size} bytes; up to {most} parts of up to {part_bytes} bytes"
        raise Refused.of(f"a part does not fit into the upload of {uri}", measured, "Send larger parts")


def in_order(uri: Uri, receipts: Sequence[UploadedPart]) -> list[UploadedPart]:
    """The receipts by their numbers. A missing one would make a shorter object, and nobody would see it.

    Raises:
        Corrupt: They are not those of parts 1, 2, 3, and so on, each once.
    """
    ordered = sorted(receipts, key=lambda receipt: receipt.number)
    if not ordered or [receipt.number for receipt in ordered] != list(range(1, len(ordered) + 1)):
        last = max((receipt.number for receipt in ordered), default=0)
        measured = f"{len(ordered)} receipts for {last} parts"
        raise Corrupt.of(f"parts of {uri} are missing or doubled", measured, "Send what is missing")
    return ordered


def unknown_upload(uri: Uri, upload: str, measured: str = "") -> NotFound:
    """For an upload that was completed, aborted or swept, or a part of one that is not there."""
    said = f"upload {upload}; {measured}" if measured else f"upload {upload}"
    return NotFound.of(f"the upload of {uri} is no longer known to the store", said, "Begin it anew")
