"""The messages of SFTP version 3, as bytes. Pure.

Source: draft-ietf-secsh-filexfer-02, and OpenSSH's extensions (PROTOCOL, section 4, in its sources).
"""

from __future__ import annotations

import enum
import errno
import stat
import struct
from collections.abc import Mapping
from typing import NamedTuple

VERSION = 3
FIELDS = (0x1, 8), (0x2, 8), (0x4, 4), (0x8, 8)
"""Flags of the attributes size, owner and group, permissions, and times, with their bytes."""
EXTENDED_ATTRIBUTES = 0x80000000


class Request(enum.IntEnum):
    """Types of requests."""

    INIT = 1
    OPEN = 3
    CLOSE = 4
    READ = 5
    WRITE = 6
    LSTAT = 7
    FSTAT = 8
    OPENDIR = 11
    READDIR = 12
    REMOVE = 13
    MKDIR = 14
    REALPATH = 16
    STAT = 17
    RENAME = 18
    EXTENDED = 200


class Response(enum.IntEnum):
    """Types of responses."""

    VERSION = 2
    STATUS = 101
    HANDLE = 102
    DATA = 103
    NAME = 104
    ATTRS = 105
    EXTENDED = 201


class Status(enum.IntEnum):
    """Codes of a status."""

    OK = 0
    EOF = 1
    NO_SUCH_FILE = 2
    PERMISSION_DENIED = 3
    FAILURE = 4
    BAD_MESSAGE = 5
    OP_UNSUPPORTED = 8


class Mode(enum.IntFlag):
    """How a file is opened."""

    READ = 0x1
    WRITE = 0x2
    CREATE = 0x8
    EXCLUSIVE = 0x20


ERRORS = {
    Status.NO_SUCH_FILE: errno.ENOENT,
    Status.PERMISSION_DENIED: errno.EACCES,
    Status.BAD_MESSAGE: errno.EINVAL,
    Status.OP_UNSUPPORTED: errno.EOPNOTSUPP,
}
"""Every other code says only that it failed."""


class ProtocolError(ConnectionError):
    """The server does not speak SFTP, or not as this client does."""


class Failure(OSError):
    """The server refuses an operation without saying why; its text is the only hint."""


class Attributes(NamedTuple):
    """Of a file; None for what the server does not say.

    Attributes:
        size: Bytes.
        mode: Permissions and kind of the file, as in `st_mode`.
        modified: Seconds since 1970.
    """

    size: int | None = None
    mode: int | None = None
    modified: int | None = None

    @property
    def is_directory(self) -> bool:
        """Whether it is known to be a directory."""
        return self.mode is not None and stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        """Whether it is known to be a symbolic link."""
        return self.mode is not None and stat.S_ISLNK(self.mode)

    @property
    def is_file(self) -> bool:
        """Whether it is a file, or may be one."""
        return self.mode is None or not stat.S_IFMT(self.mode) or stat.S_ISREG(self.mode)


class Name(NamedTuple):
    """A name in a directory, with what a link itself is."""

    name: bytes
    attributes: Attributes


def string(data: bytes) -> bytes:
    """A string with its length."""
    return struct.pack(">I", len(data)) + data


def message(kind: Request, number: int, body: bytes) -> bytes:
    """A request with its length; of INIT the number is the version."""
    return struct.pack(">IBI", len(body) + 5, kind, number) + body


def read_body(handle: bytes, start: int, length: int) -> bytes:
    """What READ requests; `handle` is a string with its length."""
    return handle + struct.pack(">QI", start, length)


def write_body(handle: bytes, start: int, data: bytes | memoryview) -> bytes:
    """What WRITE requests; `handle` is a string with its length."""
    return b"".join((handle, struct.pack(">QI", start, len(data)), data))


def _read_string(data: memoryview, start: int) -> tuple[memoryview, int]:
    """A string and where it ends."""
    end = start + 4 + int.from_bytes(data[start : start + 4], "big")
    if end > len(data):
        raise ProtocolError("a response is shorter than it states")
    return data[start + 4 : end], end


def read_string(data: memoryview) -> memoryview:
    """The string of a response that has nothing else."""
    found, end = _read_string(data, 0)
    if end != len(data):
        raise ProtocolError(f"a response has {len(data)} bytes where {end} are stated")
    return found


def read_handle(data: memoryview) -> bytes:
    """The handle of a HANDLE, as a string with its length."""
    return bytes(data[: _read_string(data, 0)[1]])


def read_status(data: memoryview, path: str) -> OSError | EOFError | None:
    """The error that a STATUS reports, or None for success."""
    code = int.from_bytes(data[:4], "big")
    if code == Status.OK:
        return None
    if code == Status.EOF:
        return EOFError()
    text = bytes(_read_string(data, 4)[0]).decode(errors="replace") if len(data) > 4 else f"status {code}"
    number = ERRORS.get(Status(code)) if code in ERRORS else None
    return OSError(number, text[:200], path) if number else Failure(errno.EIO, text[:200], path)


def read_attributes(data: memoryview, start: int = 0) -> tuple[Attributes, int]:
    """Attributes and where they end."""
    flags, position = int.from_bytes(data[start : start + 4], "big"), start + 4
    found: dict[int, int] = {}
    for flag, width in FIELDS:
        if flags & flag:
            found[flag], position = position, position + width
    if flags & EXTENDED_ATTRIBUTES:
        count, position = int.from_bytes(data[position : position + 4], "big"), position + 4
        for _ in range(2 * count):
            position = _read_string(data, position)[1]
    if position > len(data):
        raise ProtocolError("attributes are shorter than they state")
    size, mode, times = (found.get(flag) for flag in (0x1, 0x4, 0x8))
    return Attributes(
        None if size is None else int.from_bytes(data[size : size + 8], "big"),
        None if mode is None else int.from_bytes(data[mode : mode + 4], "big"),
        None if times is None else int.from_bytes(data[times + 4 : times + 8], "big"),
    ), position


def read_names(data: memoryview) -> list[Name]:
    """The names of a NAME."""
    if len(data) < 4:
        raise ProtocolError("names without their number")
    count, position = int.from_bytes(data[:4], "big"), 4
    found = []
    for _ in range(count):
        name, position = _read_string(data, position)
        _, position = _read_string(data, position)  # the line of `ls -l`, for people
        attributes, position = read_attributes(data, position)
        found.append(Name(bytes(name), attributes))
    return found


def read_extensions(data: memoryview) -> Mapping[str, bytes]:
    """The extensions that a VERSION announces, with their versions."""
    found: dict[str, bytes] = {}
    position = 0
    while position < len(data):
        name, position = _read_string(data, position)
        value, position = _read_string(data, position)
        found[bytes(name).decode(errors="replace")] = bytes(value)
    return found
