"""File operations by WebHDFS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from urllib.parse import urlsplit

from podferry.contract.errors import Corrupt, NotFound, TemporaryError
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.hadoop.errors import hadoop_error
from podferry.storage.hadoop.files import FileStatus
from podferry.storage.timeouts_and_limits import MAX_LISTED, Limits
from podferry.storage.webhdfs.block_checksums import BlockChecksums, stated_checksum
from podferry.storage.webhdfs.client import WebHdfsClient
from podferry.storage.webhdfs.responses import file_status, listed_page
from podferry.storage.write_body import BodySource

SLICE_BYTES = 256 << 10
"""Bytes given to a connection at a time."""


class WebHdfsFiles:
    """See `podferry.storage.hadoop.files.HadoopFiles`."""

    def __init__(self, client: WebHdfsClient, location: StoreLocation, limits: Limits) -> None:
        self._client, self._location, self._limits = client, location, limits

    async def status(self, path: str) -> FileStatus:
        """See `HadoopFiles.status`."""
        found = await self._client.call("GET", path, "GETFILESTATUS")
        try:
            return file_status(found["FileStatus"], path.rpartition("/")[2])
        except (KeyError, TypeError, ValueError) as error:
            raise self._unreadable(path, error) from error

    async def list(self, path: str) -> list[FileStatus]:
        """See `HadoopFiles.list`."""
        found: list[FileStatus] = []
        after: dict[str, str] = {}
        while True:
            response = await self._client.call("GET", path, "LISTSTATUS_BATCH", **after)
            try:
                page, remaining = listed_page(response)
            except (KeyError, TypeError, ValueError) as error:
                raise self._unreadable(path, error) from error
            found += page
            if not remaining:
                return found
            if not page or page[-1].name == after.get("startAfter") or len(found) > MAX_LISTED:
                evidence = f"{remaining} more entries after {len(found)}, and no end"
                raise hadoop_error("endless", self._location, path.strip("/"), evidence)
            after = {"startAfter": page[-1].name}

    async def read(self, path: str, start: int, length: int) -> memoryview:
        """See `HadoopFiles.read`. A connection that is cut is opened again for the rest."""
        data, filled, avoided = bytearray(length), 0, ""
        for attempt in range(self._limits.retries + 1):
            url = await self._place(path, start + filled, length - filled, avoided)
            try:
                async for part in self._stream(path, url):
                    if filled + len(part) > length:
                        evidence = f"more than the {length} bytes that were requested"
                        raise hadoop_error("other range", self._location, path.strip("/"), evidence)
                    data[filled : filled + len(part)] = part
                    filled += len(part)
            except TemporaryError:
                if attempt == self._limits.retries:
                    raise
                avoided = urlsplit(url).hostname or ""
            else:
                break
        return memoryview(data)[:filled]

    async def _place(self, path: str, start: int, length: int, avoided: str) -> str:
        """The URL of a range; empty if it begins behind the end of the file.

        Args:
            path: Of the file.
            start: Of the range.
            length: Of the range.
            avoided: Host of a DataNode that has just failed: another one is chosen, if there is one.
        """
        place = {"offset": str(start), "length": str(length)}
        try:
            if avoided:
                with suppress(TemporaryError):
                    return await self._client.redirection(
                        "GET", path, "OPEN", **place, excludedatanodes=avoided
                    )
            return await self._client.redirection("GET", path, "OPEN", **place)
        except Corrupt:
            return ""

    async def _stream(self, path: str, url: str) -> AsyncIterator[bytes]:
        """The bytes at a URL as they arrive; fewer than requested if the file ends before."""
        if not url:
            return
        async with self._client.responding("GET", url, path) as response:
            async for part in response.content.iter_any():
                yield part

    async def create(self, path: str, source: BodySource) -> int:
        """See `HadoopFiles.create`. What HDFS has stored is compared by its checksum."""
        checksums, sent = BlockChecksums(), 0

        async def body() -> AsyncIterator[bytes]:
            """Send in small slices what the source has."""
            nonlocal sent
            while part := await asyncio.to_thread(source.next_part):
                await asyncio.to_thread(checksums.update, part)
                for start in range(0, len(part), SLICE_BYTES):
                    timer.reschedule(loop.time() + self._limits.request_seconds)
                    yield part[start : start + SLICE_BYTES]
                sent += len(part)

        url = await self._client.redirection("PUT", path, "CREATE", overwrite="true")
        loop = asyncio.get_running_loop()
        try:
            # A DataNode may wait minutes for a NameNode to become active: so long that nothing is sent.
            async with asyncio.timeout(self._limits.request_seconds) as timer:
                async with self._client.responding("PUT", url, path, body()):
                    pass
        except TimeoutError as error:
            evidence = f"no response in {self._limits.request_seconds:.0f} s"
            raise hadoop_error("unreachable", self._location, path.strip("/"), evidence) from error
        await self._compare(path, checksums)
        return sent

    async def _compare(self, path: str, checksums: BlockChecksums) -> None:
        url = await self._client.redirection("GET", path, "GETFILECHECKSUM")
        found = (await self._client.json_at(url, path)).get("FileChecksum") or {}
        algorithm, text = str(found.get("algorithm", "")), str(found.get("bytes", ""))
        expected = checksums.file_checksum(algorithm)
        if expected is not None and stated_checksum(text) != expected:
            evidence = f"{algorithm} {stated_checksum(text)}, {expected} was sent"
            raise hadoop_error("damaged", self._location, path.strip("/"), evidence)

    async def rename(self, old: str, new: str, *, replace: bool) -> None:
        """See `HadoopFiles.rename`. With options it is the operation that does not move into directories."""
        options = "OVERWRITE" if replace else "NONE"
        await self._client.call("PUT", old, "RENAME", destination=new, renameoptions=options)

    async def delete(self, path: str) -> None:
        """See `HadoopFiles.delete`."""
        try:
            await self._client.call("DELETE", path, "DELETE")
        except NotFound:  # a part of the path is a file
            return

    async def close(self) -> None:
        """See `HadoopFiles.close`."""
        await self._client.close()

    def _unreadable(self, path: str, error: Exception) -> Exception:
        evidence = f"{type(error).__name__}: {error}"[:200]
        return hadoop_error("not hdfs", self._location, path.strip("/"), evidence)
