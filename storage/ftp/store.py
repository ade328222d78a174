"""Directories of FTP servers as stores: `ftp://host/directory` and `ftps://host/directory`.

FTP cannot create exclusively: `WriteMode.CREATE` looks first, and then writes. A write goes to a temporary
file next to its target, which is renamed over it. Listings skip temporary files. Those left by a crash are
not removed, because another writer may be using them.
"""

from __future__ import annotations

import asyncio
import ftplib
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import TypeVar

from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation, store_error, translating, unused_keys
from podferry.storage.ftp.directories import endless, file_entry, is_there, list_directory, path_of
from podferry.storage.ftp.login import Tls, login_for, names_of_credentials
from podferry.storage.ftp.read_range import ReadRange
from podferry.storage.ftp.replies import Endless, NoPassiveMode
from podferry.storage.ftp.session import FtpSession
from podferry.storage.ftp.sessions import CLOSED, MAX_SESSIONS, Sessions
from podferry.storage.ftp.small_reads import SmallReads
from podferry.storage.ftp.worker_threads import WorkerThreads
from podferry.storage.ftp.writes import delete_file, exists, write_file
from podferry.storage.object_names import checked_name
from podferry.storage.retries import pauses, retry_changed
from podferry.storage.same_names import SameNames
from podferry.storage.store import Body, Receive, StoreConfig, WriteMode
from podferry.storage.timeouts_and_limits import LIMITS, Limits
from podferry.storage.walk import Directory, Walk, children_of
from podferry.storage.write_body import BodySource

T = TypeVar("T")
STREAM_BYTES = 64 << 20
"""What the server has sent behind the end of a range is wasted: some megabytes, and a new data connection."""
MAX_FILE_BYTES = 1 << 62
CUTS = (ConnectionError, TimeoutError, EOFError, ftplib.error_temp, ftplib.error_proto)
"""After these, another session may succeed."""


class FtpStore:
    """A directory of an FTP server. Calls run in threads, each with a session."""

    exclusive_create = False
    multipart = None
    request_builder = None
    server_copy = None
    stream_bytes = STREAM_BYTES

    def __init__(self, uri: Uri, config: StoreConfig, limits: Limits = LIMITS) -> None:
        """Open the store; sends nothing.

        Raises:
            InvalidSpec: The URI or a credential is not valid.
        """
        self.uri, self._limits = uri, limits
        login = login_for(uri, config.credentials)
        names = names_of_credentials(config.credentials)
        unused = unused_keys(config.credentials, names, config.reload_credentials)
        self._location = StoreLocation(uri, login.address, names, "", config.network.ca.names, unused)
        self._sessions = Sessions(uri, config, self._location, limits)
        self._threads = WorkerThreads(MAX_SESSIONS, "ftp")
        self._small = SmallReads(self._sessions, self._threads, limits) if login.tls is Tls.NONE else None
        self._closed = threading.Event()
        self._names = SameNames(uri, self._found, self._directory)

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The listing is complete before the first entry is yielded."""
        walk = Walk(self.uri, self._directory, self.stat, self._limits.worker_threads)
        for entry in await walk.files(prefix):
            yield entry

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`; directories without files are skipped, as object stores have none."""
        return await children_of(self._directory, prefix)

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`. The tag consists of the time of modification, if known, and the size."""
        path = path_of(self.uri, checked_name(name))
        return await self._call(name, lambda session: file_entry(session, path, name))

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`. After a lost connection, what has not arrived is read over a new one."""
        if self._small is not None and tag and (start, length) == (0, size):
            data = await self._small.read(path_of(self.uri, checked_name(name)), size or 0, tag)
            if data is not None:
                return data
        wanted = start, length, tag, size

        async def read() -> memoryview:
            """Read what is there now."""
            return await self._call(name, ReadRange(self._location, checked_name(name), wanted).run)

        return await retry_changed(read, tag, size)

    async def stream(
        self, name: str, start: int, length: int, tag: str, size: int | None, receive: Receive
    ) -> None:
        """See `StreamingStore.stream`."""
        reading = ReadRange(self._location, checked_name(name), (start, length, tag, size), receive)
        await self._call(name, reading.run)

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`. Not repeated after a lost connection: the body is read once."""
        path = path_of(self.uri, checked_name(name))
        source = BodySource(body, self._limits.part_bytes, MAX_FILE_BYTES)

        def work(session: FtpSession) -> None:
            if mode is WriteMode.CREATE and exists(session, path):
                raise store_error("exists", self._location, name)
            write_file(session, self._location, name, source)

        async with self._names.writing(name):
            await source.finish(asyncio.ensure_future(self._call(name, work, repeat=False)))

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`. Directories remain."""
        ordered = [(name, path_of(self.uri, checked_name(name))) for name in names]
        calls = (self._call(name, partial(delete_file, path=path)) for name, path in ordered)
        await asyncio.gather(*calls)

    async def close(self) -> None:
        """Close the connections."""
        self._closed.set()
        if self._small is not None:
            await self._small.close()
        self._threads.close()
        await asyncio.to_thread(self._sessions.close)

    async def _found(self, name: str) -> bool:
        path = path_of(self.uri, name)
        return await self._call(name, lambda session: is_there(session, path))

    async def _directory(self, name: str) -> Directory:
        return await self._call(name, lambda session: list_directory(session, self.uri, name))

    async def _call(self, name: str, work: Callable[[FtpSession], T], *, repeat: bool = True) -> T:
        """Do something in a session; if that is lost, again in another one."""
        with translating(self._location, name, answered=self._sessions.answered):
            if self._closed.is_set():
                raise ConnectionAbortedError(CLOSED)
            try:
                return await self._threads.run(lambda: self._repeated(work, repeat))
            except Endless as error:
                raise endless(self._location, name, str(error)) from error
            except NoPassiveMode as error:
                raise store_error("no passive mode", self._location, "", f"{str(error)[:100]!a}") from error

    def _repeated(self, work: Callable[[FtpSession], T], repeat: bool) -> T:
        waits = pauses(self._limits.retries, self._limits.retry_seconds)
        while True:
            started = False
            try:
                with self._sessions.session() as session:
                    started = True
                    return work(session)
            except CUTS as error:
                may_repeat = (repeat or not started) and not isinstance(error, ssl.SSLError)
                pause = next(waits, None) if may_repeat else None
                if pause is None:
                    raise
            if self._closed.wait(pause):
                raise ConnectionAbortedError(CLOSED)
