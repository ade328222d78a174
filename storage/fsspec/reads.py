"""What an fsspec file system is asked for, as calls that block: finding and reading."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote

import fsspec.core

from podferry.contract.errors import Changed, Corrupt, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import store_error
from podferry.storage.fsspec.install_hints import unknown_scheme
from podferry.storage.fsspec.options import HTTP_SCHEMES, OBJECT_STORE_SCHEMES, FsspecOptions
from podferry.storage.object_names import is_temporary, join

Info = Mapping[str, Any]

TAG_FIELDS = ("ETag", "etag", "e_tag", "content_md5", "md5Hash", "crc32c", "generation")
TIME_FIELDS = ("mtime", "modified", "LastModified", "last_modified", "last_write_time", "modify", "created")
"""Fields of `info` that tell one content from another: the former alone, the latter with the size."""


class FsspecReads:
    """Blocks; raises what the file system raises, and our own errors.

    Attributes:
        uri: Where names are relative to.
        location: What messages call it.
    """

    def __init__(self, uri: Uri, settings: FsspecOptions) -> None:
        self.uri, self.location = uri, settings.location
        self._options = settings.options
        self._held: tuple[Any, str] | None = None
        self._dropped = False
        self._making = threading.Lock()

    def drop(self) -> Any | None:
        """Let the file system go, where there is one; it. Calls that still run make no other."""
        with self._making:
            held, self._held, self._dropped = self._held, None, True
        return held[0] if held is not None else None

    @property
    def fs(self) -> Any:
        """The file system; some connect when it is made."""
        return self._opened()[0]

    def _opened(self) -> tuple[Any, str]:
        """The file system and the path of the bucket; made in a thread, since some connect at once."""
        with self._making:
            if self._dropped:
                raise InterruptedError(f"{self.uri} is closed")
            if self._held is None:
                root = f"{self.uri.scheme}://{self.uri.bucket}/"
                try:
                    self._held = fsspec.core.url_to_fs(root, **self._options)
                except ImportError as error:
                    # Some file systems load what they stand on only now: hdfs and its pyarrow.
                    raise unknown_scheme(self.uri) from error
            return self._held

    def bucket_missing(self) -> bool:
        """Whether what was not found is the bucket itself."""
        if self.uri.scheme not in OBJECT_STORE_SCHEMES:
            return False
        try:
            self.fs.info(self.uri.bucket)
        except FileNotFoundError:
            return True
        except Exception:  # noqa: BLE001  # a bucket that may not be looked at still exists
            return False
        return False

    def path(self, name: str) -> str:
        """What the file system calls a name."""
        root = self._opened()[1].rstrip("/")
        key = join(self.uri.key, name)
        return f"{root}/{quote(key) if self.uri.scheme in HTTP_SCHEMES else key}" if key else root or "/"

    def _relative(self, path: str, top: str) -> str:
        # One slash alone: of an object's key a second one is a part.
        rest = path.removeprefix(top.rstrip("/")).removeprefix("/").rstrip("/")
        return unquote(rest) if self.uri.scheme in HTTP_SCHEMES else rest

    def _entry(self, name: str, info: Info) -> Entry:
        if info.get("size") is None:
            info = self.fs.info(self.path(name))
        return Entry(name, int(info.get("size") or 0), _tag(info))

    def _is_file(self, path: str) -> bool:
        """Whether a listing would be of a file; object stores list by prefix, and HTTP has no directories."""
        return self.uri.scheme not in (*OBJECT_STORE_SCHEMES, *HTTP_SCHEMES) and bool(self.fs.isfile(path))

    def _holds_any(self, path: str) -> bool:
        """Whether a directory counts: object stores have no empty ones, so neither has any other store."""
        if self.uri.scheme in (*OBJECT_STORE_SCHEMES, *HTTP_SCHEMES):
            return True
        return any(files for _, _, files in self.fs.walk(path))

    def find(self, prefix: str) -> list[Entry]:
        """All files below a prefix, in any order."""
        top = self.path(prefix)
        if self._is_file(top):
            return []
        try:
            found = self.fs.find(top, withdirs=False, detail=True)
        except FileNotFoundError:
            if self.bucket_missing():
                raise
            return []
        if not found and self.bucket_missing():
            raise store_error("bucket", self.location)
        return list(self._kept(found, top, prefix))

    def _kept(self, found: Mapping[str, Info], top: str, prefix: str) -> Iterator[Entry]:
        for path, info in found.items():
            name = self._relative(path, top)
            if path.endswith("/"):
                if info.get("size"):  # no directory's marker but bytes, under a name that no file can have
                    yield self._entry(join(prefix, name) + "/", info)
            elif name and info.get("type") != "directory" and not is_temporary(name):
                yield self._entry(join(prefix, name), info)

    def children(self, prefix: str) -> Iterator[str]:
        """See `Store.children`; in any order."""
        top = self.path(prefix)
        if self._is_file(top):
            return
        try:
            found = self.fs.ls(top, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            if self.bucket_missing():
                raise
            return
        for info in found:
            name = self._relative(info["name"], top)
            if info["type"] == "directory":
                yield from [name + "/"] if name and self._holds_any(info["name"]) else []
            elif name and info["name"].rstrip("/") != top and not is_temporary(name):
                yield name

    def stat(self, name: str) -> Entry:
        """See `Store.stat`."""
        info = self.fs.info(self.path(name))
        if info.get("type") == "directory":
            raise FileNotFoundError(name)
        return self._entry(name, info)

    def read(self, name: str, start: int, length: int | None, tag: str, size: int | None) -> memoryview:
        """See `Store.read`. Tag and size are compared after the bytes have come."""
        held = self.stat(name).size if length == 0 or (start and length is None) else None
        wanted = max(0, held - start) if held is not None and length is None else length
        if held is not None and start + (wanted or 0) > held:
            raise self._short(name, held, start, length)
        data = b"" if wanted == 0 else self._bytes(name, start, wanted)
        if tag or size is not None:
            self._same(self.stat(name), tag, size)
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
            return bytes(self.fs.cat_file(self.path(name)))
        try:
            data = bytes(self.fs.cat_file(self.path(name), start=start, end=start + length))
        except (OSError, ValueError):
            if self.stat(name).size < start + length:  # a range that begins past the end
                data = b""
            else:
                raise
        return data if len(data) == length else self._mended(name, data, start, length)

    def _mended(self, name: str, data: bytes, start: int, length: int) -> bytes:
        """What was asked for, out of an answer of another length.

        ossfs takes the end of a range as inclusive, sshfs answers with the whole file.
        """
        size = self.stat(name).size
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


def _tag(info: Info) -> str:
    strong = next((info[key] for key in TAG_FIELDS if info.get(key)), None)
    if strong:
        return str(strong)
    time = next((info[key] for key in TIME_FIELDS if info.get(key)), None)
    if isinstance(time, datetime):
        time = time.timestamp()  # some give the one in listings and the other for single files
    return f"{time}-{info.get('size')}" if time else ""
