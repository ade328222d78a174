"""File operations by hdfs-native's client, in threads: its calls block, and several may run in parallel.

It checks each block's CRC32C while it reads, and reads from another replica if one fails. Its asynchronous
client panics where this one waits, and its fsspec layer cuts names at `#` and `?`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from threading import Lock
from typing import TypeVar

import hdfs_native

from podferry.contract.errors import NotFound
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.hadoop.errors import hadoop_error
from podferry.storage.hadoop.files import FileStatus
from podferry.storage.hdfs.native_errors import native_error
from podferry.storage.timeouts_and_limits import Limits
from podferry.storage.write_body import BodySource

T = TypeVar("T")
PAGE_FILES = 1000
"""Of one response to a listing, by default (dfs.ls.limit)."""
PANIC = "PanicException"
"""Of Rust, derived from BaseException: nobody else may take it for the end of the process."""


class NativeFiles:
    """See `podferry.storage.hadoop.files.HadoopFiles`.

    Args:
        location: Of the root, for errors.
        connect: Makes the client; it sends nothing, but may read tickets.
        limits: Timeouts, and threads: each reads from a DataNode by a connection of its own.
        replication: Of new files; None for the cluster's.
    """

    def __init__(
        self,
        location: StoreLocation,
        connect: Callable[[], hdfs_native.Client],
        limits: Limits,
        replication: int | None = None,
    ) -> None:
        self._location, self._connect, self._limits = location, connect, limits
        self._replication = replication
        self._lock = Lock()
        self._client: hdfs_native.Client | None = None
        self._threads = _executor(limits)
        self._seconds = limits.connect_seconds + limits.stall_seconds + limits.retry_seconds

    async def status(self, path: str) -> FileStatus:
        """See `HadoopFiles.status`."""
        return await self._call(path, lambda client: _status(client.get_file_info(path)), self._seconds)

    async def list(self, path: str) -> list[FileStatus]:
        """See `HadoopFiles.list`."""
        pages = await self._call(path, lambda client: iter(client.list_status(path)), self._seconds)
        found: list[hdfs_native.FileStatus] = []
        while page := await self._call(path, lambda _: list(islice(pages, PAGE_FILES)), self._seconds):
            found += page
        if len(found) == 1 and found[0].path == path and not found[0].isdir:
            return [_status(found[0], "")]
        return [_status(each) for each in found]

    async def read(self, path: str, start: int, length: int) -> memoryview:
        """See `HadoopFiles.read`."""

        def read(client: hdfs_native.Client) -> memoryview:
            """Read what there is of the range: the client panics beyond the end."""
            reader = client.read(path)
            count = min(length, len(reader) - start)
            return memoryview(reader.read_range(start, count) if count > 0 else b"")

        return await self._call(path, read, self._limits.request_seconds)

    async def create(self, path: str, source: BodySource) -> int:
        """See `HadoopFiles.create`. A failure leaves a file that the caller deletes."""
        options = hdfs_native.WriteOptions(overwrite=False, create_parent=True, replication=self._replication)
        writer = await self._call(path, lambda client: client.create(path, options), self._seconds)
        sent = 0
        while part := await asyncio.to_thread(source.next_part):
            await self._call(path, partial(_write, writer, part), self._limits.request_seconds)
            sent += len(part)
        await self._call(path, lambda _: writer.close(), self._limits.request_seconds)
        return sent

    async def rename(self, old: str, new: str, *, replace: bool) -> None:
        """See `HadoopFiles.rename`."""
        await self._call(new, lambda client: client.rename(old, new, replace), self._seconds)

    async def delete(self, path: str) -> None:
        """See `HadoopFiles.delete`."""
        try:
            await self._call(path, lambda client: client.delete(path), self._seconds)
        except NotFound:  # a part of the path is a file
            return

    async def close(self) -> None:
        """See `HadoopFiles.close`. The client closes its connections when nothing refers to it."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._client = None

    async def _call(self, path: str, work: Callable[[hdfs_native.Client], T], seconds: float) -> T:
        loop, threads = asyncio.get_running_loop(), self._threads
        try:
            async with asyncio.timeout(seconds):
                return await loop.run_in_executor(threads, self._explained, path, work)
        except TimeoutError as error:
            self._abandon(threads)
            evidence = f"no response in {seconds:.0f} s"
            raise hadoop_error("unreachable", self._location, path.strip("/"), evidence) from error

    def _abandon(self, threads: ThreadPoolExecutor) -> None:
        """Leave threads whose call does not return, and its connection; hdfs-native itself waits for ever."""
        with self._lock:
            if self._threads is threads:
                threads.shutdown(wait=False)
                self._threads = _executor(self._limits)
                self._client = None

    def _explained(self, path: str, work: Callable[[hdfs_native.Client], T]) -> T:
        try:
            return work(self._opened())
        except Exception as error:
            raise native_error(error, self._location, path.strip("/")) from error
        except BaseException as error:  # a panic of Rust is no `Exception`
            if type(error).__name__ != PANIC:
                raise
            raise hadoop_error("unreachable", self._location, path.strip("/"), str(error)) from error

    def _opened(self) -> hdfs_native.Client:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client


def _executor(limits: Limits) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(limits.worker_threads, "hdfs")


def _write(writer: hdfs_native.FileWriter, part: bytes, client: hdfs_native.Client) -> None:
    del client
    writer.write(part)


def _status(found: hdfs_native.FileStatus, name: str | None = None) -> FileStatus:
    name = found.path.rpartition("/")[2] if name is None else name
    return FileStatus(name, found.length, f"{found.modification_time}-{found.length}", found.isdir)
