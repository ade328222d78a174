"""Builds SMB2 requests for files, and reads responses. Pure; source: MS-SMB2 section 2.2."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from podferry.storage.smb.nt_status import ProtocolError

HEADER = struct.Struct("<4sHHIHHIIQIIQ16s")
"""Protocol, size, credit charge, status, command, credits, flags, next command, message, process, tree,
session, signature."""
MAGIC = b"\xfeSMB"
IS_RESPONSE, IS_ASYNC, IS_RELATED, IS_SIGNED = 0x1, 0x2, 0x4, 0x8
SAME_FILE = b"\xff" * 16
"""In a related request: the file that the one before has opened."""
CREDIT_BYTES = 65536
"""Payload that one credit pays for."""


class Command(IntEnum):
    """What a request asks for."""

    NEGOTIATE = 0
    SESSION_SETUP = 1
    LOGOFF = 2
    TREE_CONNECT = 3
    CREATE = 5
    CLOSE = 6
    FLUSH = 7
    READ = 8
    WRITE = 9
    IOCTL = 11
    QUERY_DIRECTORY = 14
    QUERY_INFO = 16
    SET_INFO = 17


class Request(NamedTuple):
    """A request without its header; `payload` is the larger of what is sent and what may be answered."""

    command: Command
    body: bytes | bytearray
    payload: int = 1

    @property
    def charge(self) -> int:
        """The credits that it costs."""
        return (max(self.payload, 1) - 1) // CREDIT_BYTES + 1


class Response(NamedTuple):
    """A response with its header, which offsets in it are counted from."""

    status: int
    data: memoryview

    def at(self, offset: int, length: int) -> memoryview:
        """A part of it. Raises `ProtocolError` if it ends before."""
        if offset < HEADER.size or offset + length > len(self.data):
            raise ProtocolError(f"{length} bytes at {offset} of a message of {len(self.data)}")
        return self.data[offset : offset + length]

    def unpack(self, fields: struct.Struct) -> tuple[int, ...]:
        """The fields of its body."""
        return fields.unpack(self.at(HEADER.size, fields.size))


class Access:
    """Rights that a file is opened with; MS-SMB2 2.2.13.1."""

    READ = 0x00000081
    """Data and attributes; of a directory, its list."""
    ATTRIBUTES = 0x00000080
    WRITE = 0x00110186
    """Data and attributes, and the right to rename or delete it."""
    DELETE = 0x00010080


class Disposition(IntEnum):
    """What opening does if the name is taken, or is not."""

    OPEN = 1
    CREATE = 2
    OPEN_OR_CREATE = 3


class Options:
    """How a file is opened."""

    DIRECTORY = 0x00000001
    FILE = 0x00000040
    DELETE_ON_CLOSE = 0x00001000


SHARE_ALL, SHARE_NOTHING = 7, 0
"""What others may do with an open file: read, write and delete it, or nothing."""
NORMAL = 0x80
IMPERSONATION = 2

_CREATE = struct.Struct("<HBBIQQIIIIIHHII")
_CONTEXT = struct.Struct("<IHHHHI")
_WANTS_FILE_ID = _CONTEXT.pack(0, 16, 4, 0, 0, 0) + b"QFid\0\0\0\0"
_CREATED = struct.Struct("<HBBIQQQQQQII16sII")
_CLOSE = struct.Struct("<HHI16s")
_CLOSED = struct.Struct("<HHIQQQQQQI")
_READ = struct.Struct("<HBBIQ16sIIIHHB")
_READ_RESPONSE = struct.Struct("<HBBIII")
_WRITE = struct.Struct("<HHIQ16sIIHHI")
_WRITTEN = struct.Struct("<HHI")

CLOSE_WITH_ATTRIBUTES = 1
IS_DIRECTORY = 0x10


class Attributes(NamedTuple):
    """Of a file: bytes, time of the last write in 100 ns, the server's number for it, and flags."""

    size: int
    written: int
    file_id: int
    flags: int


class Created(NamedTuple):
    """An open file."""

    handle: bytes
    attributes: Attributes


def create(
    path: str,
    access: int,
    disposition: Disposition = Disposition.OPEN,
    options: int = 0,
    share: int = SHARE_ALL,
) -> Request:
    """Open or create a file; the path is the server's, without a slash at its start."""
    name = path.encode("utf-16-le", "surrogatepass")
    offset = HEADER.size + _CREATE.size
    padding = -len(name) % 8
    contexts = offset + len(name) + padding
    head = _CREATE.pack(
        57, 0, 0, IMPERSONATION, 0, 0, access, NORMAL, share, disposition, options,
        offset, len(name), contexts, len(_WANTS_FILE_ID),
    )  # fmt: skip
    return Request(Command.CREATE, head + name + bytes(padding) + _WANTS_FILE_ID)


def created(response: Response) -> Created:
    """The file that a `create` has opened."""
    fields = _CREATED.unpack(response.at(HEADER.size, _CREATED.size))
    written, size, flags, handle = fields[6], fields[9], fields[10], fields[12]
    file_id = _file_id(response, fields[13], fields[14])
    return Created(handle, Attributes(size, written, file_id, flags))


def _file_id(response: Response, start: int, length: int) -> int:
    """The server's number for a file, 0 if it does not say."""
    while length:
        following, name_at, name_length, _, data_at, data_length = _CONTEXT.unpack(
            response.at(start, _CONTEXT.size)
        )
        if bytes(response.at(start + name_at, name_length)) == b"QFid" and data_length >= 8:
            return int.from_bytes(response.at(start + data_at, 8), "little")
        if not following:
            break
        start += following
    return 0


def close(handle: bytes = SAME_FILE) -> Request:
    """Close a file, and ask for what it is then."""
    return Request(Command.CLOSE, _CLOSE.pack(24, CLOSE_WITH_ATTRIBUTES, 0, handle))


def closed(response: Response) -> tuple[int, int]:
    """Bytes, and time of the last write, of a file that was closed."""
    fields = response.unpack(_CLOSED)
    return fields[8], fields[5]


def flush(handle: bytes) -> Request:
    """Have what was written reach the disk."""
    return Request(Command.FLUSH, _CLOSE.pack(24, 0, 0, handle))


def read(start: int, length: int, handle: bytes = SAME_FILE) -> Request:
    """Read bytes of a file; fewer arrive at its end."""
    body = _READ.pack(49, HEADER.size + 16, 0, length, start, handle, 0, 0, 0, 0, 0, 0)
    return Request(Command.READ, body, length)


def read_bytes(response: Response) -> memoryview:
    """The bytes that were read."""
    _, offset, _, length, _, _ = response.unpack(_READ_RESPONSE)
    return response.at(offset, length)


def write(handle: bytes, start: int, data: memoryview) -> Request:
    """Write bytes to a file."""
    head = _WRITE.pack(49, HEADER.size + _WRITE.size, len(data), start, handle, 0, 0, 0, 0, 0)
    return Request(Command.WRITE, bytearray().join((head, data)), len(data))


def bytes_written(response: Response) -> int:
    """How many bytes a `write` has written."""
    return response.unpack(_WRITTEN)[2]
