"""Every other store, through an fsspec file system.

File systems are called in threads. Those that run on fsspec's own loop, and those in memory or on disk, take
several calls at once; others hold one connection, so their calls queue.

Object stores take a write whole. Elsewhere it goes into a temporary file and is renamed. Where renaming
refuses a name that is taken, the old file is deleted first: a reader may then find nothing for a moment.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import fsspec
import fsspec.asyn
import fsspec.core

from podferry.contract.errors import AlreadyExists, Changed, Corrupt, FerryError, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.body import Source, whole
from podferry.storage.fsspec_config import EXCLUSIVE, HTTP, OBJECTS, settings_for
from podferry.storage.fsspec_heads import heads_for
from podferry.storage.limits import LIMITS, Limits
from podferry.storage.naming import checked_name, is_temporary, join, temporary_name
from podferry.storage.requests import Requests
from podferry.storage.schemes import unknown_scheme
from podferry.storage.store import Body, StoreConfig, WriteMode
from podferry.storage.translate import make, translating

T = TypeVar("T")
Info = Mapping[str, Any]

PARALLEL = ("memory", "file", "local")
"""File systems without a connection: several threads may call them."""
SESSIONS = ("_s3creator", "_session")
"""Where s3fs, gcsfs and fsspec's HTTP keep theirs; no file system has a public way to close it."""
CLOSING = 5
"""Seconds: nothing is sent, but the loop may be busy."""
STRONG_TAGS = ("ETag", "etag", "e_tag", "content_md5", "md5Hash", "crc32c", "generation")
TIMES = ("mtime", "modified", "LastModified", "last_modified", "last_write_time", "modify", "created")
"""Fields of `info` that tell one content from another: the former alone, the latter with the size."""


class FsspecStore:
    """A store behind an fsspec file system."""

    parts = None

    def __init__(self, uri: Uri, config: StoreConfig, limits: Limits = LIMITS) -> None:
        self.uri = uri
        self.exclusive_create = uri.scheme in EXCLUSIVE
        settings = settings_for(uri, config, limits)
        self._place = settings.place
        self._options = settings.options
        self._config = config
        self._settings = settings
        self._limits = limits
        self._held: tuple[Any, str] | None = None
        self._making = threading.Lock()
        kind = fsspec.get_filesystem_class(uri.scheme)
        parallel = getattr(kind, "async_impl", False) or uri.scheme in PARALLEL
        self._threads = ThreadPoolExecutor(limits.parallel_calls if parallel else 1, "fsspec")
        self._call_seconds = limits.connect_seconds + limits.stall_seconds + limits.retry_seconds

    @cached_property
    def requests(self) -> Requests | None:
        """See `Store.requests`."""
        return heads_for(self.uri, self._config, self._settings, lambda: self._fs)

    async def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """See `Store.entries`. The file system lists it whole before the first entry comes."""
        for entry in await self._call(prefix, lambda: self._find(prefix), None):
            yield entry

    async def children(self, prefix: str = "") -> list[str]:
        """See `Store.children`."""
        return await self._call(prefix, lambda: sorted(self._children(prefix)), self._call_seconds)

    async def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        checked_name(name)
        return await self._call(name, lambda: self._stat(name), self._call_seconds)

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """See `Store.read`. Tag and size are compared after the bytes have come."""
        checked_name(name)
        return await self._call(
            name, lambda: self._read(name, start, length, tag, size), self._limits.request_seconds
        )

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """See `Store.write`."""
        checked_name(name)
        source = Source(body, self._limits.part_bytes, self._limits.largest_object)
        work = self._create if mode is WriteMode.CREATE else self._overwrite
        upload = asyncio.ensure_future(self._call(name, lambda: work(name, body, source), None))
        try:
            await asyncio.shield(upload)
        except asyncio.CancelledError:
            source.stop()
            with suppress(Exception):  # the cancellation is what the caller gets
                await upload
            raise
        except BaseException:
            if source.failure is not None:
                raise source.failure from None
            raise

    async def delete(self, names: Iterable[str]) -> None:
        """See `Store.delete`."""
        ordered = [checked_name(name) for name in names]
        await asyncio.gather(
            *(self._call(name, lambda name=name: self._delete(name), self._call_seconds) for name in ordered)  # type: ignore[misc]
        )

    async def close(self) -> None:
        """Let the threads go, and the file system with its connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        held, self._held = self._held, None
        if held is not None:
            await asyncio.to_thread(_end_session, held[0])

    async def _call(self, name: str, work: Callable[[], T], seconds: float | None) -> T:
        loop = asyncio.get_running_loop()
        with translating(self._place, name):
            async with asyncio.timeout(seconds):
                return await loop.run_in_executor(self._threads, self._checked, work, name)

    def _checked(self, work: Callable[[], T], name: str) -> T:
        try:
            return work()
        except FileNotFoundError:
            if self._bucket_missing():
                raise make("bucket", self._place) from None
            raise

    def _bucket_missing(self) -> bool:
        if self.uri.scheme not in OBJECTS:
            return False
        try:
            self._fs.info(self.uri.bucket)
        except FileNotFoundError:
            return True
        except Exception:  # noqa: BLE001  # a bucket that may not be looked at still exists
            return False
        return False

    @property
    def _fs(self) -> Any:
        return self._opened()[0]

    def _opened(self) -> tuple[Any, str]:
        """The file system and the path of the bucket; made in a thread, since some connect at once."""
        with self._making:
            if self._held is None:
                root = f"{self.uri.scheme}://{self.uri.bucket}/"
                try:
                    self._held = fsspec.core.url_to_fs(root, **self._options)
                except ImportError as error:
                    # Some file systems load what they stand on only now: hdfs and its pyarrow.
                    raise unknown_scheme(self.uri) from error
            return self._held

    def _path(self, name: str) -> str:
        root = self._opened()[1].rstrip("/")
        key = join(self.uri.key, name)
        return f"{root}/{quote(key) if self.uri.scheme in HTTP else key}" if key else root or "/"

    def _relative(self, path: str, top: str) -> str:
        # One slash alone: of an object's key a second one is a part.
        rest = path.removeprefix(top.rstrip("/")).removeprefix("/").rstrip("/")
        return unquote(rest) if self.uri.scheme in HTTP else rest

    def _entry(self, name: str, info: Info) -> Entry:
        if info.get("size") is None:
            info = self._fs.info(self._path(name))
        return Entry(name, int(info.get("size") or 0), _tag(info))

    def _is_file(self, path: str) -> bool:
        """Whether a listing would be of a file; object stores list by prefix, and HTTP has no directories."""
        return self.uri.scheme not in (*OBJECTS, *HTTP) and bool(self._fs.isfile(path))

    def _holds_any(self, path: str) -> bool:
        """Whether a directory counts: object stores have no empty ones, so neither has any other store."""
        if self.uri.scheme in (*OBJECTS, *HTTP):
            return True
        return any(files for _, _, files in self._fs.walk(path))

    def _find(self, prefix: str) -> list[Entry]:
        top = self._path(prefix)
        if self._is_file(top):
            return []
        try:
            found = self._fs.find(top, withdirs=False, detail=True)
        except FileNotFoundError:
            if self._bucket_missing():
                raise
            return []
        if not found and self._bucket_missing():
            raise make("bucket", self._place)
        return list(self._kept(found, top, prefix))

    def _kept(self, found: Mapping[str, Info], top: str, prefix: str) -> Iterator[Entry]:
        for path, info in found.items():
            name = self._relative(path, top)
            if path.endswith("/"):
                if info.get("size"):  # no directory's marker but bytes, under a name that no file can have
                    yield self._entry(join(prefix, name) + "/", info)
            elif name and info.get("type") != "directory" and not is_temporary(name):
                yield self._entry(join(prefix, name), info)

    def _children(self, prefix: str) -> Iterator[str]:
        top = self._path(prefix)
        if self._is_file(top):
            return
        try:
            found = self._fs.ls(top, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            if self._bucket_missing():
                raise
            return
        for info in found:
            name = self._relative(info["name"], top)
            if info["type"] == "directory":
                yield from [name + "/"] if name and self._holds_any(info["name"]) else []
            elif name and info["name"].rstrip("/") != top and not is_temporary(name):
                yield name

    def _stat(self, name: str) -> Entry:
        info = self._fs.info(self._path(name))
        if info.get("type") == "directory":
            raise FileNotFoundError(name)
        return self._entry(name, info)

    def _read(self, name: str, start: int, length: int | None, tag: str, size: int | None) -> memoryview:
        held = self._stat(name).size if length == 0 or (start and length is None) else None
        wanted = max(0, held - start) if held is not None and length is None else length
        if held is not None and start + (wanted or 0) > held:
            raise self._short(name, held, start, length)
        data = b"" if wanted == 0 else self._bytes(name, start, wanted)
        if tag or size is not None:
            self._same(self._stat(name), tag, size)
        return memoryview(data)

    def _same(self, now: Entry, tag: str, size: int | None) -> None:
        if tag and now.tag != tag:
            measured = f"tag {now.tag}, was {tag}"
        elif size not in {None, now.size}:
            measured = f"{now.size} bytes, {size} were listed"
        else:
            return
        raise Changed.of(f"{self.uri / now.name} is no longer the object that was listed", measured)

    def _bytes(self, name: str, start: int, length: int | None) -> bytes:
        if length is None:
            return bytes(self._fs.cat_file(self._path(name)))
        try:
            data = bytes(self._fs.cat_file(self._path(name), start=start, end=start + length))
        except (OSError, ValueError):
            if self._stat(name).size < start + length:  # a range that begins past the end
                data = b""
            else:
                raise
        return data if len(data) == length else self._mended(name, data, start, length)

    def _mended(self, name: str, data: bytes, start: int, length: int) -> bytes:
        """What was asked for, out of an answer of another length.

        ossfs takes the end of a range as inclusive, sshfs answers with the whole file.
        """
        size = self._stat(name).size
        if start + length > size:
            raise self._short(name, size, start, length)
        if len(data) == size:
            return data[start : start + length]
        if len(data) == length + 1:
            return data[:length]
        raise Unavailable.of(
            f"the answer for {self.uri / name} has the wrong length",
            f"{len(data)} bytes came; asked for {length} from {start} of {size}",
            "Try again",
        )

    def _short(self, name: str, size: int, start: int, length: int | None) -> Corrupt:
        asked = "the rest" if length is None else str(length)
        return Corrupt.of(
            f"{self.uri / name} ends before the bytes that were asked for",
            f"{size} bytes; asked for {asked} from {start}",
            "List it again",
        )

    def _create(self, name: str, body: Body, source: Source) -> None:
        if self.exclusive_create:
            data = _collect(source)
            try:
                self._fs.pipe_file(self._path(name), data, mode="create")
            except FileExistsError:
                raise self._exists(name) from None
            except OSError:
                # MinIO's refusal reaches s3fs's callers as an error without a meaning of its own.
                with suppress(FerryError, OSError):
                    if self._stat(name).size != len(data):
                        raise self._exists(name) from None
                raise
            return
        if self._fs.exists(self._path(name)):
            raise self._exists(name)
        self._overwrite(name, body, source)

    def _exists(self, name: str) -> AlreadyExists:
        error = make("exists", self._place, name)
        return AlreadyExists(*error.problems)

    def _overwrite(self, name: str, body: Body, source: Source) -> None:
        del body  # the source holds it
        if self.uri.scheme in OBJECTS:
            self._put(self._path(name), source)
            return
        temporary = self._path(temporary_name(name))
        self._fs.makedirs(temporary.rpartition("/")[0] or "/", exist_ok=True)
        try:
            with self._fs.open(temporary, "wb") as file:
                while part := source.next_part():
                    file.write(part)
            self._rename(temporary, self._path(name))
        except BaseException:
            with suppress(Exception):  # it may never have come to be; the first error is the one that counts
                self._fs.rm_file(temporary)
            raise

    def _put(self, path: str, source: Source) -> None:
        first = source.next_part()
        if len(first) < self._limits.part_bytes:
            self._fs.pipe_file(path, first)
            return
        file = self._fs.open(path, "wb", block_size=self._limits.part_bytes, autocommit=False)
        try:
            while first:
                file.write(first)
                first = source.next_part()
            file.close()
            file.commit()
        except BaseException:
            with suppress(Exception):  # the first error is the one that counts
                file.discard()
            file.closed = True  # else its finalizer uploads what it holds
            raise

    def _rename(self, old: str, new: str) -> None:
        try:
            self._fs.mv(old, new)
        except Exception:  # each file system refuses a taken name in its own way
            if not self._fs.exists(new):
                raise
            self._fs.rm_file(new)
            self._fs.mv(old, new)

    def _delete(self, name: str) -> None:
        try:
            if self.uri.scheme in OBJECTS or self._fs.exists(self._path(name)):
                self._fs.rm_file(self._path(name))
        except FileNotFoundError:
            if self._bucket_missing():
                raise


def _end_session(fs: Any) -> None:
    """Close the connections of a file system that runs on fsspec's own loop.

    Left alone it does so when it is collected, which is at any time, in any thread, and perhaps on a loop
    that is not the sessions' own. Others close theirs when they are dropped.
    """
    session = next((found for name in SESSIONS if (found := getattr(fs, name, None)) is not None), None)
    if session is not None:
        fsspec.asyn.sync(fs.loop, session.__aexit__, None, None, None, timeout=CLOSING)
        fsspec.asyn.sync(
            fs.loop, asyncio.sleep, 0, timeout=CLOSING
        )  # a transport lets its socket go a turn later


def _collect(source: Source) -> bytes:
    return whole(iter(source.next_part, b""))


def _tag(info: Info) -> str:
    strong = next((info[key] for key in STRONG_TAGS if info.get(key)), None)
    if strong:
        return str(strong)
    time = next((info[key] for key in TIMES if info.get(key)), None)
    if isinstance(time, datetime):
        time = time.timestamp()  # some give the one in listings and the other for single files
    return f"{time}-{info.get('size')}" if time else ""
