"""Refuses names that differ only in case: to a share they are one file, and one would replace the other.

A look before each write finds what is there. Within one store such writes wait for each other, so that the
second one finds the first. Where another agent writes at the same time, the server's spelling of the name
shows it afterwards.
"""

from __future__ import annotations

from podferry.contract.errors import InvalidSpec
from podferry.contract.file_names import caseless
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.smb.directories import Lister
from podferry.storage.smb.file_names import plain_name, server_name
from podferry.storage.smb.information import real_path
from podferry.storage.smb.login import Share
from podferry.storage.smb.messages import Response
from podferry.storage.smb.nt_status import SUCCESS

REMEDY = "Choose another name: to a share they are one file"
REMEDY_DIRECTORY = "Choose another name: to a share they are one directory"


class LetterCase:
    """Compares names with those of the server, and raises `InvalidSpec` if they differ only in case.

    Args:
        location: Of the store, for errors.
        lister: Finds what a directory has.
    """

    def __init__(self, location: StoreLocation, lister: Lister) -> None:
        self._location, self._lister = location, lister

    async def check_free(self, share: Share, directory: str, name: str) -> None:
        """Before a write: nothing in the directory, a path of the server, has the name but for its case."""
        sent = server_name(name.rpartition("/")[2])
        others = [found for found in await self._lister.names_like(share, directory, sent) if found != sent]
        if others:
            raise self._clash(name, "differs only in case from a file that is there", others[0], REMEDY)

    def check_directories(self, name: str, response: Response) -> None:
        """After a new file was created next to `name`, with the path in `response`."""
        above = name.rpartition("/")[0]
        found = _spelled(response, name.count("/") + 1).rpartition("/")[0]
        if _respelled(above, found):
            raise self._clash(
                name,
                "is below a directory that differs only in case from one that is there",
                found,
                REMEDY_DIRECTORY,
            )

    def check_written(self, name: str, response: Response) -> None:
        """After a write, whose file has the path in `response`."""
        found = _spelled(response, name.count("/") + 1)
        if _respelled(name, found):
            what = "has replaced a file that was written meanwhile and differs only in case"
            raise self._clash(name, what, found, REMEDY)

    def _clash(self, name: str, how: str, other: str, remedy: str) -> InvalidSpec:
        return InvalidSpec.of(f"{self._location.uri / name} {how}", other, remedy)


def _spelled(response: Response, parts: int) -> str:
    """The last components of an open file's path, as a name with slashes; empty if it is unknown."""
    if response.status != SUCCESS:
        return ""
    return "/".join(plain_name(part) for part in real_path(response).split("\\")[-parts:])


def _respelled(name: str, found: str) -> bool:
    return found != name and caseless(found) == caseless(name)
