"""Uploads to Cloud Storage in parts that survive a restart.

A part is an object of its own below the store's URI, with a name that listings skip; the service makes one
object of all of them ("Composite objects", Cloud Storage), and then they are deleted. Resumable uploads of
the service itself take one part after the other, and cannot be sent in parallel. Each part, and the object,
is compared with its CRC32C.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Sequence

from podferry.contract.errors import NotFound, Unavailable
from podferry.storage.checksum.checksums import ChecksumKind, combine_crcs, crc
from podferry.storage.gcs.client import GcsClient, Json
from podferry.storage.in_parallel import for_each_limited
from podferry.storage.multipart import UploadedPart, ordered_parts, unknown_upload
from podferry.storage.object_names import checked_name, temporary_name
from podferry.storage.staged_uploads import StagedUploads

UPLOAD = re.compile(r"[0-9a-f]{10}")
COMPOSED = 32
"""Objects that one request composes: "Quotas and limits", Cloud Storage."""
FIRST_GROUP = 1 << 20
"""Number of the first object that is composed of parts, and a part of the target."""
UPLOAD_FIELD = "podferry-upload"
"""Of the object's metadata: completing a second time finds it."""
DELETED_AT_ONCE = 16


class GcsParts(StagedUploads):
    """Uploads to one bucket.

    Attributes:
        client: Sends the requests.
    """

    max_part_bytes = 5 << 40
    max_parts = COMPOSED * COMPOSED
    upload_bytes = 5

    def __init__(self, client: GcsClient) -> None:
        super().__init__(client.location.uri)
        self.client = client

    async def complete(self, name: str, upload: str, parts: Sequence[UploadedPart]) -> None:
        """See `MultipartStore.complete`."""
        checked_name(name)
        ordered = ordered_parts(self._uri / name, parts)
        staged = await self._staged(upload)
        if any(staged.get(part.number, {}).get("crc32c") != part.tag for part in ordered):
            if not await self._is_stored(name, upload, ordered):
                raise unknown_upload(self._uri / name, upload)
            return
        numbered = [(part.number, str(staged[part.number]["generation"])) for part in ordered]
        made = await self._compose(name, upload, numbered)
        if not _is_made_of(made, ordered):
            measured = f"{made.get('size')} bytes, CRC32C {made.get('crc32c')}"
            raise Unavailable.of(f"{self._uri / name} was composed damaged", measured, "Send it again")
        await self.abort(name, upload)

    async def abort(self, name: str, upload: str) -> None:
        """See `MultipartStore.abort`."""
        checked_name(name)
        self._known.discard(upload)
        found = await self._staged(upload)
        # The first one last: as long as it is there, a restarted process finds the others.
        numbers = sorted(found, reverse=True)
        await for_each_limited(numbers[:-1], lambda number: self._delete(upload, number), DELETED_AT_ONCE)
        for number in numbers[-1:]:
            await self._delete(upload, number)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    async def _stage(self, name: str, upload: str, number: int, data: bytes | memoryview) -> str:
        """Send a part; its CRC32C."""
        expected = _base64(await asyncio.to_thread(lambda: crc(ChecksumKind.CRC32C, data)))
        made = await self.client.insert(part_name(upload, number), data)
        if made.get("crc32c") != expected:
            what = f"part {number} of {self._uri / name} was damaged in transit"
            measured = f"CRC32C {made.get('crc32c')}, not {expected}"
            raise Unavailable.of(what, measured, "Send it again")
        return expected

    async def _compose(self, name: str, upload: str, parts: list[tuple[int, str]]) -> Json:
        """The target made of numbered objects; those of more than one request through groups."""
        if len(parts) > COMPOSED:
            groups = [parts[start : start + COMPOSED] for start in range(0, len(parts), COMPOSED)]
            made = await asyncio.gather(
                *(
                    self.client.compose(_named(upload, group), part_name(upload, FIRST_GROUP + index), {})
                    for index, group in enumerate(groups)
                )
            )
            parts = [(FIRST_GROUP + index, str(one["generation"])) for index, one in enumerate(made)]
        return await self.client.compose(_named(upload, parts), name, {UPLOAD_FIELD: upload})

    async def _has_begun(self, name: str, upload: str) -> bool:
        return 0 in await self._staged(upload)

    async def _staged(self, upload: str) -> dict[int, Json]:
        """The metadata of an upload's objects, by number."""
        if not UPLOAD.fullmatch(upload):
            return {}
        prefix = f".podferry-{upload}"
        start = len(self.client.key(prefix))
        items = await self.client.listed(prefix)
        return {int(item["name"][start : start + 6], 16): item for item in items}

    async def _is_stored(self, name: str, upload: str, parts: Sequence[UploadedPart]) -> bool:
        try:
            found = await self.client.metadata(name)
        except NotFound as error:
            if type(error) is NotFound:
                return False
            raise
        return found.get("metadata", {}).get(UPLOAD_FIELD) == upload and _is_made_of(found, parts)

    async def _delete(self, upload: str, number: int) -> None:
        try:
            await self.client.delete(part_name(upload, number))
        except NotFound as error:
            if type(error) is not NotFound:
                raise


def part_name(upload: str, number: int) -> str:
    """The name of a numbered object of an upload; listings skip it."""
    return temporary_name("", f"{upload}{number:06x}")


def _named(upload: str, parts: list[tuple[int, str]]) -> list[tuple[str, str]]:
    return [(part_name(upload, number), generation) for number, generation in parts]


def _is_made_of(found: Json, parts: Sequence[UploadedPart]) -> bool:
    """Whether an object has the size and the CRC32C of its parts."""
    combined = 0
    for part in parts:
        own = int.from_bytes(base64.b64decode(part.tag), "big")
        combined = combine_crcs(ChecksumKind.CRC32C, combined, own, part.size)
    size = sum(part.size for part in parts)
    return int(found.get("size", -1)) == size and found.get("crc32c") == _base64(combined)


def _base64(checksum: int) -> str:
    return base64.b64encode(checksum.to_bytes(4, "big")).decode()
