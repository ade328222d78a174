"""Multipart uploads to a memory store: as strict as the strictest server, with its faults."""

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
    """Parts in a dictionary; as many as at S3, of any size."""

    min_part_bytes = 1
    max_parts = 10_000

    def __init__(self, uri: Uri, content: Content) -> None:
        self._uri = uri
        self._content = content

    async def begin(self, name: str, part_bytes: int) -> str:
        """See `MultipartStore.begin`."""
        check_part_bytes(self._uri / checked_name(name), part_bytes, self.min_part_bytes)
        fault = await self._content.meet("begin", name)
        upload = self._content.begin_upload(self._key(name), part_bytes)
        fault.raise_after()
        return upload

    async def send(self, name: str, upload: str, number: int, data: bytes | memoryview) -> UploadedPart:
        """See `MultipartStore.send`."""
        checksum = crc64(data)
        fault = await self._content.meet("send", f"{checked_name(name)}#{number}")
        pending = self._pending(name, upload, forget=fault.forget)
        check_part(self._uri / name, number, len(data), pending.part_bytes, self.max_parts)
        arrived = fault.damaged(data)
        if crc64(arrived) != checksum:
            raise Unavailable.of(f"part {number} of {self._uri / name} arrived damaged", "", "Send it again")
        pending.parts[number] = arrived
        fault.raise_after()
        return UploadedPart(number, _tag(checksum), checksum, len(data))

    async def complete(self, name: str, upload: str, parts: Sequence[UploadedPart]) -> None:
        """See `MultipartStore.complete`."""
        ordered = ordered_parts(self._uri / checked_name(name), parts)
        fault = await self._content.meet("complete", name)
        try:
            pending = self._pending(name, upload, forget=fault.forget)
        except NotFound:
            if self._checksum(name) != object_checksum(ordered):
                raise
        else:
            self._content.objects[pending.key] = self._joined(name, upload, pending, ordered)
            del self._content.uploads[upload]
        fault.raise_after()

    async def abort(self, name: str, upload: str) -> None:
        """See `MultipartStore.abort`."""
        fault = await self._content.meet("abort", checked_name(name))
        self._content.uploads.pop(upload, None)
        fault.raise_after()

    def _key(self, name: str) -> str:
        return join(self._uri.key, name)

    def _pending(self, name: str, upload: str, *, forget: bool) -> PendingUpload:
        if forget:
            self._content.uploads.pop(upload, None)
        pending = self._content.uploads.get(upload)
        if pending is None or pending.key != self._key(name):
            raise unknown_upload(self._uri / name, upload)
        return pending

    def _joined(self, name: str, upload: str, pending: PendingUpload, parts: Sequence[UploadedPart]) -> bytes:
        for part in parts:
            data = pending.parts.get(part.number)
            if data is None or _tag(crc64(data)) != part.tag:
                raise unknown_upload(self._uri / name, upload, f"part {part.number} is missing")
            if part.number < len(parts):
                check_part_bytes(self._uri / name, len(data), pending.part_bytes)
        return b"".join(pending.parts[part.number] for part in parts)

    def _checksum(self, name: str) -> ObjectChecksum | None:
        data = self._content.objects.get(self._key(name))
        return None if data is None else ObjectChecksum(len(data), crc64(data))


def _tag(checksum: int) -> str:
    return f'"{checksum:016x}"'
