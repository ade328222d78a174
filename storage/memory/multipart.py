"""Uploads in parts to a store in memory: as strict as the strictest server, with its faults."""

from __future__ import annotations

from collections.abc import Sequence

from podferry.contract.errors import NotFound, Unavailable
from podferry.contract.uri import Uri
from podferry.storage.checksum.checksums import ObjectChecksum, crc64, object_checksum
from podferry.storage.memory.faults import Content, PendingUpload
from podferry.storage.multipart import (
    UploadedPart,
    check_part,
    check_part_bytes,
    ordered_parts,
    unknown_upload,
)
from podferry.storage.object_names import checked_name, join


class MemoryMultipart:
    """Parts in a dictionary.

    Attributes:
        min_part_bytes: Parts may be as small as a test likes.
        max_parts: As at S3.
    """

    min_part_bytes = 1
    max_parts = 10_000

    def __init__(self, uri: Uri, content: Content) -> None:
        self._uri = uri
        self._content = content

    async def begin(self, name: str, part_bytes: int) -> str:
        """See `MultipartStore.begin`."""
        check_part_bytes(self._uri / checked_name(name), part_bytes, self.min_part_bytes)
        fault = await self._content.meet("begin", name)
        upload = self._content.hold(self._key(name), part_bytes)
        fault.ends()
        return upload

    async def send(self, name: str, upload: str, number: int, data: bytes | memoryview) -> UploadedPart:
        """See `MultipartStore.send`."""
        promised = crc64(data)
        fault = await self._content.meet("send", f"{checked_name(name)}#{number}")
        held = self._held(name, upload, forget=fault.forget)
        check_part(self._uri / name, number, len(data), held.part_bytes, self.max_parts)
        arrived = fault.damaged(data)
        if crc64(arrived) != promised:
            raise Unavailable.of(f"part {number} of {self._uri / name} arrived damaged", "", "Send it again")
        held.parts[number] = arrived
        fault.ends()
        return UploadedPart(number, _tag(promised), promised, len(data))

    async def complete(self, name: str, upload: str, receipts: Sequence[UploadedPart]) -> None:
        """See `MultipartStore.complete`."""
        ordered = ordered_parts(self._uri / checked_name(name), receipts)
        fault = await self._content.meet("complete", name)
        try:
            held = self._held(name, upload, forget=fault.forget)
        except NotFound:
            if self._whole(name) != object_checksum(ordered):
                raise
        else:
            self._content.objects[held.key] = self._joined(name, upload, held, ordered)
            del self._content.uploads[upload]
        fault.ends()

    async def abort(self, name: str, upload: str) -> None:
        """See `MultipartStore.abort`."""
        fault = await self._content.meet("abort", checked_name(name))
        self._content.uploads.pop(upload, None)
        fault.ends()

    def _key(self, name: str) -> str:
        return join(self._uri.key, name)

    def _held(self, name: str, upload: str, *, forget: bool) -> PendingUpload:
        if forget:
            self._content.uploads.pop(upload, None)
        held = self._content.uploads.get(upload)
        if held is None or held.key != self._key(name):
            raise unknown_upload(self._uri / name, upload)
        return held

    def _joined(self, name: str, upload: str, held: PendingUpload, receipts: Sequence[UploadedPart]) -> bytes:
        for receipt in receipts:
            data = held.parts.get(receipt.number)
            if data is None or _tag(crc64(data)) != receipt.tag:
                raise unknown_upload(self._uri / name, upload, f"part {receipt.number} is not there")
            if receipt.number < len(receipts):
                check_part_bytes(self._uri / name, len(data), held.part_bytes)
        return b"".join(held.parts[receipt.number] for receipt in receipts)

    def _whole(self, name: str) -> ObjectChecksum | None:
        data = self._content.objects.get(self._key(name))
        return None if data is None else ObjectChecksum(len(data), crc64(data))


def _tag(checksum: int) -> str:
    return f'"{checksum:016x}"'
