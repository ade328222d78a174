"""What is in a directory of an SFTP server."""

from __future__ import annotations

import asyncio
import errno

from podferry.contract.errors import Corrupt, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.object_names import is_temporary, join
from podferry.storage.sftp.client import SftpClient, text
from podferry.storage.sftp.messages import Attributes, Name
from podferry.storage.timeouts_and_limits import MAX_LISTED
from podferry.storage.walk import Directory

REQUESTS = 4
"""READDIRs that are under way: OpenSSH responds with 100 names each."""
HOME = "~"
"""`sftp://host/~/data` is below the directory in which the user arrives, as in curl's URLs."""


def path_of(uri: Uri, name: str) -> bytes:
    """The path of a name at the server."""
    key = join(uri.key, name)
    first, _, rest = key.partition("/")
    path = (rest or ".") if first == HOME else f"/{key}"
    return path.encode("utf-8", "surrogateescape")


def entry_of(name: str, found: Attributes, path: bytes) -> Entry:
    """A file's entry. The tag consists of its time of modification and size: the server says no more.

    Raises:
        FileNotFoundError: It is a directory.
        OSError: The server does not say how large it is.
    """
    if found.is_directory:
        raise IsADirectoryError(errno.EISDIR, "a directory", text(path))
    if found.size is None:
        raise OSError(errno.EIO, "the server does not state the size", text(path))
    return Entry(name, found.size, f"{found.modified or 0:x}-{found.size:x}")


async def list_directory(client: SftpClient, uri: Uri, directory: str) -> Directory:
    """What is directly in a directory; links are followed, but not to a directory above.

    Raises:
        OSError: It cannot be listed.
        Corrupt: There is no end to it, or a name is none.
        Unavailable: A link leads nowhere.
    """
    path = path_of(uri, directory)
    try:
        names = await _names(client, path, uri / directory)
    except FileNotFoundError as error:
        return Directory(problem=error.strerror or "there is no such directory")
    found = [(join(directory, text(name)), path.rstrip(b"/") + b"/" + name, what) for name, what in names]
    members = [member for member in found if not _is_hidden(member[1]) and not is_temporary(member[0])]
    linked = [(name, where) for name, where, what in members if what.is_link or what.mode is None]
    targets = await _followed(client, uri, linked, path)
    attributes = [(name, where, targets.get(name, what)) for name, where, what in members]
    return Directory(
        tuple(entry_of(name, what, where) for name, where, what in attributes if what and what.is_file),
        directories=tuple(sorted(name for name, _, what in attributes if what and what.is_directory)),
    )


def _is_hidden(path: bytes) -> bool:
    """Whether a name is that of the directory itself, of the one above, or no name."""
    return path.rpartition(b"/")[2] in {b"", b".", b".."}


async def _names(client: SftpClient, path: bytes, uri: Uri) -> list[Name]:
    handle = await client.open_directory(path)
    found: list[Name] = []
    try:
        while True:
            batches = await asyncio.gather(*(client.read_directory(handle, path) for _ in range(REQUESTS)))
            for batch in batches:
                found += _checked(batch, uri)
            if len(found) > MAX_LISTED:
                what, remedy = f"the listing of {uri} has no end", "Name a directory further down"
                raise Corrupt.of(what, f"over {MAX_LISTED:,} names", remedy)
            if not all(batches):
                return found
    finally:
        client.close(handle)


def _checked(names: list[Name], uri: Uri) -> list[Name]:
    """The same; raises `Corrupt` for a path."""
    path = next((text(each.name) for each in names if b"/" in each.name), None)
    if path is not None:
        what, remedy = f"the server lists a name that is none in {uri}", "Rename it at its source"
        raise Corrupt.of(what, ascii(path)[:200], remedy)
    return names


async def _followed(
    client: SftpClient, uri: Uri, links: list[tuple[str, bytes]], directory: bytes
) -> dict[str, Attributes | None]:
    """What links lead to; None for a directory above them."""
    found = await asyncio.gather(*(client.attributes(link) for _, link in links), return_exceptions=True)
    targets: dict[str, Attributes | None] = {}
    for (name, link), target in zip(links, found, strict=True):
        if isinstance(target, FileNotFoundError):
            what, remedy = f"{uri / name} is a dangling link", "Mount the volume of its target, or remove it"
            raise Unavailable.of(what, target.strerror or "", remedy) from target
        if isinstance(target, BaseException):
            raise target
        above = target.is_directory and await _is_above(client, link, directory)
        targets[name] = None if above else target
    return targets


async def _is_above(client: SftpClient, link: bytes, directory: bytes) -> bool:
    """Whether a link leads to a directory above, or to the one that it is in."""
    target, here = await asyncio.gather(client.real_path(link), client.real_path(directory))
    return (here + b"/").startswith(target.rstrip(b"/") + b"/")
