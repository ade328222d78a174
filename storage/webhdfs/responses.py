"""What the responses of WebHDFS say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from podferry.contract.errors import FerryError
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.hadoop.errors import hadoop_error, java_error
from podferry.storage.hadoop.files import FileStatus

MAX_JSON_BYTES = 64 << 20
"""A page of a listing has 1,000 files by default (dfs.ls.limit), in less than 1 MiB."""
DIRECTORY = "DIRECTORY"


class RemoteException(msgspec.Struct, frozen=True):
    """The NameNode's exception.

    Attributes:
        javaClassName: With its package, or empty.
        exception: Its name alone.
        message: The first line is for people.
    """

    exception: str = ""
    javaClassName: str = ""  # noqa: N815 - the name of the field
    message: str | None = ""


class _Refused(msgspec.Struct, frozen=True):
    RemoteException: RemoteException


def refusal(location: StoreLocation, name: str, status: int, body: bytes) -> FerryError:
    """The error for a response with an HTTP status of 400 or more."""
    try:
        found = msgspec.json.decode(body, type=_Refused).RemoteException
    except msgspec.MsgspecError:
        return _without_exception(location, name, status, body)
    return java_error(location, name, found.javaClassName or found.exception, found.message or "")


def _without_exception(location: StoreLocation, name: str, status: int, body: bytes) -> FerryError:
    """Another server's page, or a gateway's."""
    kind = {401: "kerberos web", 407: "proxy credentials", 429: "throttled"}.get(status, "not hdfs")
    if status >= 500:
        kind = "unreachable"
    first = body[:200].decode("ascii", errors="replace").strip().partition("\n")[0]
    return hadoop_error(kind, location, name, f"HTTP {status}, {first}" if first else f"HTTP {status}")


def file_status(found: dict[str, Any], name: str | None = None) -> FileStatus:
    """A status of `GETFILESTATUS` or a listing; `name` replaces its `pathSuffix`.

    Raises:
        KeyError, TypeError, ValueError: It lacks a field.
    """
    directory = found["type"] == DIRECTORY
    size, modified = int(found["length"]), int(found["modificationTime"])
    identity = f"{found.get('fileId', '')}-{modified}-{size}"
    suffix = str(found["pathSuffix"]) if name is None else name
    return FileStatus(suffix, size, identity, directory)


def listed_page(found: dict[str, Any]) -> tuple[list[FileStatus], int]:
    """A page of `LISTSTATUS_BATCH`, and how many entries remain; raises as `file_status`."""
    listing = found["DirectoryListing"]
    return list(_statuses(listing["partialListing"])), int(listing["remainingEntries"])


def _statuses(found: dict[str, Any]) -> Iterator[FileStatus]:
    for each in found["FileStatuses"]["FileStatus"]:
        yield file_status(each)
