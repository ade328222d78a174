"""Blocking calls to an fsspec file system: finding and reading."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from podferry.contract.errors import FerryError, InvalidSpec
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import check_listed, store_error, too_short
from podferry.storage.fsspec.options import OBJECT_STORE_SCHEMES, FsspecOptions
from podferry.storage.object_names import is_temporary, join
from podferry.storage.timeouts_and_limits import Limits

Info = Mapping[str, Any]

TAG_FIELDS = ("ETag", "etag", "e_tag", "content_md5", "md5Hash", "crc32c", "generation")
TIME_FIELDS = ("mtime", "modified", "LastModified", "last_modified", "created")
"""Fields of `info` that identify a file's content: a tag alone, a time together with the size."""


class FsspecReads:
    """Calls block; they raise the file system's errors and our own. Names are relative to `uri`."""

    def __init__(self, uri: Uri, options: FsspecOptions, limits: Limits) -> None:
        self.uri, self.location = uri, options.location
        self._options, self._limits = options.options, limits
        self._opened: tuple[Any, str] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def release(self) -> Any | None:
        """Give up the file system and return it, or None if none was opened. Later calls fail."""
        with self._lock:
            opened, self._opened, self._closed = self._opened, None, True
        return opened[0] if opened is not None else None

    @property
    def file_system(self) -> Any:
        """The file system; opening it may connect, so only worker threads use it."""
        return self._open()[0]

    def _open(self) -> tuple[Any, str]:
        """The file system and the path of the bucket."""
        with self._lock:
            if self._closed:
                raise InterruptedError(f"{self.uri} is closed")
            if self._opened is None:
                # Imported here: it loads fsspec and aiohttp, which the listings of gs:// do not need.
                from podferry.storage.fsspec.connections import open_file_system  # noqa: PLC0415

                self._opened = open_file_system(self.uri, self._options, self._limits)
            return self._opened

    def is_bucket_missing(self) -> bool:
        """Whether the bucket itself does not exist."""
        if self.uri.scheme not in OBJECT_STORE_SCHEMES:
            return False
        try:
            self.file_system.info(self.uri.bucket)
        except FileNotFoundError:
            return True
        except Exception:  # noqa: BLE001  # a bucket without read permission still exists
            return False
        return False

    def path(self, name: str) -> str:
        """The path of a name in the file system."""
        root = self._open()[1].rstrip("/")
        key = join(self.uri.key, name)
        return f"{root}/{key}" if key else root or "/"

    def relative(self, path: str, top: str) -> str:
        """The part of a path below `top`."""
        # Only one slash: a second one is part of the object's key.
        return path.removeprefix(top.rstrip("/")).removeprefix("/").rstrip("/")

    def _entry(self, name: str, info: Info) -> Entry:
        if info.get("size") is None:
            info = self.file_system.info(self.path(name))
        if info.get("size") is None:
            what = f"the server does not state the size of {self.uri / name}"
            raise InvalidSpec.of(what, "", "Have it send Content-Length, or copy the data to another store")
        return Entry(name, int(info["size"]), content_tag(info))

    def find(self, prefix: str) -> list[Entry]:
        """All objects of an object store below a prefix, in any order."""
        top = self.path(prefix)
        try:
            found = self.file_system.find(top, withdirs=False, detail=True)
        except FileNotFoundError:
            if self.is_bucket_missing():
                raise
            return []
        if not found and self.is_bucket_missing():
            raise store_error("bucket", self.location)
        return list(self._entries(found, top, prefix))

    def _entries(self, found: Mapping[str, Info], top: str, prefix: str) -> Iterator[Entry]:
        for path, info in found.items():
            name = self.relative(path, top)
            if path.endswith("/"):
                # A directory marker is empty; bytes under this name are an object that cannot be a file.
                if info.get("size"):
                    yield self._entry(join(prefix, name) + "/", info)
            elif name and info.get("type") != "directory" and not is_temporary(name):
                yield self._entry(join(prefix, name), info)

    def children(self, prefix: str) -> list[str]:
        """See `Store.children`, of an object store; in any order."""
        top = self.path(prefix)
        try:
            found = self.file_system.ls(top, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            if self.is_bucket_missing():
                raise
            return []
        names = list[str]()
        for info in found:
            name = self.relative(info["name"], top)
            if info["type"] == "directory":
                names += [name + "/"] if name else []
            elif name and info["name"].rstrip("/") != top and not is_temporary(name):
                names.append(name)
        return names

    def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        found = self.file_entry(name)
        if found is None:
            raise FileNotFoundError(name)
        return found

    def file_entry(self, name: str) -> Entry | None:
        """The entry of a file, or None if it is a directory; raises as `Store.stat`."""
        info = self._info(name)
        return None if info.get("type") == "directory" else self._entry(name, info)

    def _info(self, name: str) -> Info:
        found: Info = self.file_system.info(self.path(name))
        return found

    def read(self, name: str, start: int, length: int | None, tag: str, size: int | None) -> memoryview:
        """See `Store.read`. Tag and size are compared after the bytes have arrived."""
        available = self.stat(name).size if length == 0 or (start and length is None) else None
        if available is not None:
            if start + (length or 0) > available:
                raise too_short(self.location, name, start, length, f"{available} bytes")
            length = available - start if length is None else length
        data = b"" if length == 0 else self._bytes(name, start, length)
        if tag or size is not None:
            check_listed(self.location, self.stat(name), tag, size)
        return memoryview(data)

    def _bytes(self, name: str, start: int, length: int | None) -> bytes:
        if length is None:
            try:
                return bytes(self.file_system.cat_file(self.path(name)))
            except OSError:
                self.stat(name)  # raises if it is a directory: some only say that reading failed
                raise
        try:
            data = bytes(self.file_system.cat_file(self.path(name), start=start, end=start + length))
        except (OSError, ValueError):
            if self.stat(name).size >= start + length:
                raise
            data = b""  # the range begins past the end
        if len(data) != length:
            raise self._wrong_length(name, len(data), start, length)
        return data

    def _wrong_length(self, name: str, found: int, start: int, length: int) -> FerryError:
        size = self.stat(name).size
        if start + length > size:
            return too_short(self.location, name, start, length, f"{size} bytes")
        evidence = f"{found} bytes came; requested {length} from {start} of {size}"
        return store_error("cut" if found < length else "other range", self.location, name, evidence)


def content_tag(info: Info) -> str:
    """What identifies a file's content, or empty."""
    strong = next((info[key] for key in TAG_FIELDS if info.get(key)), None)
    if strong:
        return str(strong)
    time = next((info[key] for key in TIME_FIELDS if info.get(key)), None)
    if isinstance(time, datetime):
        time = time.timestamp()  # some report one type in listings and the other for single files
    return f"{time}-{info.get('size')}" if time else ""
