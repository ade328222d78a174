"""Requests for directories and about files. Pure; sources: MS-SMB2 section 2.2, MS-FSCC section 2.4."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from podferry.storage.smb.messages import HEADER, SAME_FILE, Attributes, Command, Request, Response
from podferry.storage.smb.nt_status import ProtocolError

_QUERY_DIRECTORY = struct.Struct("<HBBI16sHHI")
_BUFFER = struct.Struct("<HHI")
_ENTRY = struct.Struct("<IIQQQQQQIIIIQ")
_QUERY_INFO = struct.Struct("<HBBIHHIII16s")
_SET_INFO = struct.Struct("<HBBIHHI16s")
_RENAME = struct.Struct("<B7xQI")
_LENGTH = struct.Struct("<I")

DIRECTORY_CLASS, ALL_CLASS, RENAME_CLASS, LINK_CLASS, DISPOSITION_CLASS = 38, 18, 10, 11, 13
"""FileIdFullDirectoryInformation, FileAllInformation, FileRenameInformation,
FileLinkInformation, FileDispositionInformation."""
NAME_OFFSET = 96
"""Of the name, in FileAllInformation."""
NAME_BYTES = 64 * 1024 - 512
"""For a name: one credit's worth."""


class DirectoryItem(NamedTuple):
    """One name in a directory, as the server sends it."""

    name: str
    attributes: Attributes


def query_directory(length: int, pattern: str = "*", handle: bytes = SAME_FILE) -> Request:
    """List a directory, from where the last such request has ended."""
    name = pattern.encode("utf-16-le", "surrogatepass")
    offset = HEADER.size + _QUERY_DIRECTORY.size
    head = _QUERY_DIRECTORY.pack(33, DIRECTORY_CLASS, 0, 0, handle, offset, len(name), length)
    return Request(Command.QUERY_DIRECTORY, head + name, length)


def directory_items(response: Response) -> Iterator[DirectoryItem]:
    """What a directory has, without `.` and `..`."""
    data = _buffer(response)
    start = 0
    while True:
        if start + _ENTRY.size > len(data):
            raise ProtocolError(f"an entry at {start} of a listing of {len(data)} bytes")
        fields = _ENTRY.unpack_from(data, start)
        end = start + _ENTRY.size + fields[9]
        if end > len(data):
            raise ProtocolError(f"a name until {end} of a listing of {len(data)} bytes")
        name = str(data[start + _ENTRY.size : end], "utf-16-le", "surrogatepass")
        if name not in {".", ".."}:
            yield DirectoryItem(name, Attributes(fields[6], fields[4], fields[12], fields[8]))
        if not fields[0]:
            return
        start += fields[0]


def query_name(handle: bytes = SAME_FILE) -> Request:
    """Ask for the path of an open file."""
    return Request(
        Command.QUERY_INFO,
        _QUERY_INFO.pack(41, 1, ALL_CLASS, NAME_BYTES, 0, 0, 0, 0, 0, handle) + b"\0",
        NAME_BYTES,
    )


def real_path(response: Response) -> str:
    """The path of an open file below its share, as the server stores it, with backslashes."""
    data = _buffer(response)
    if len(data) < NAME_OFFSET + _LENGTH.size:
        raise ProtocolError(f"{len(data)} bytes of information about a file")
    (length,) = _LENGTH.unpack_from(data, NAME_OFFSET)
    return str(data[NAME_OFFSET + 4 : NAME_OFFSET + 4 + length], "utf-16-le", "replace")


def rename(handle: bytes, path: str, *, replace: bool) -> Request:
    """Give an open file another name."""
    name = path.encode("utf-16-le", "surrogatepass")
    return _set_info(RENAME_CLASS, _RENAME.pack(replace, 0, len(name)) + name, handle)


def link(handle: bytes, path: str) -> Request:
    """Give an open file a second name, which must be free."""
    name = path.encode("utf-16-le", "surrogatepass")
    return _set_info(LINK_CLASS, _RENAME.pack(False, 0, len(name)) + name, handle)


def set_deleted(deleted: bool, handle: bytes = SAME_FILE) -> Request:
    """Have an open file deleted when it is closed, or no more."""
    return _set_info(DISPOSITION_CLASS, bytes([deleted]), handle)


def _set_info(information: int, data: bytes, handle: bytes) -> Request:
    offset = HEADER.size + _SET_INFO.size
    return Request(
        Command.SET_INFO,
        _SET_INFO.pack(33, 1, information, len(data), offset, 0, 0, handle) + data,
        len(data),
    )


def _buffer(response: Response) -> memoryview:
    _, offset, length = response.unpack(_BUFFER)
    return response.at(offset, length)
