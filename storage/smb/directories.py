"""Lists directories of a share."""

from __future__ import annotations

from collections.abc import Iterable

from podferry.contract.errors import Corrupt, InvalidSpec
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.object_names import is_temporary, join
from podferry.storage.smb.file_names import last_component, may_be_mangled, plain_name
from podferry.storage.smb.information import (
    DirectoryItem,
    directory_items,
    query_directory,
    query_name,
    real_path,
)
from podferry.storage.smb.login import Share
from podferry.storage.smb.messages import IS_DIRECTORY, Access, Options, Request, close, create, created
from podferry.storage.smb.nt_status import (
    NAMES,
    NO_MORE_FILES,
    NO_SUCH_FILE,
    OBJECT_PATH_NOT_FOUND,
    SUCCESS,
    StatusError,
)
from podferry.storage.smb.reads import answered, entry_of
from podferry.storage.timeouts_and_limits import MAX_LISTED
from podferry.storage.walk import Directory

LIST_BYTES = 64 * 1024
"""Of the first part of a listing, which costs one credit: some 400 names."""
MORE_LIST_BYTES = 1024 * 1024
"""Of each further part; as much as servers take."""
MISSING = frozenset({0xC0000034, OBJECT_PATH_NOT_FOUND, NO_SUCH_FILE, 0xC0000103})
NO_MORE = frozenset({NO_MORE_FILES, NO_SUCH_FILE})


def _open(path: str) -> Request:
    return create(path, Access.READ, options=Options.DIRECTORY)


class Lister:
    """Lists directories of one store.

    Args:
        uri: Of the store, for messages.
        max_listed: Names of a directory that may be real.
    """

    def __init__(self, uri: Uri, max_listed: int = MAX_LISTED) -> None:
        self._uri, self._max_listed = uri, max_listed
        self._above: dict[str, frozenset[int]] = {}

    async def read(self, share: Share, directory: str, path: str) -> Directory:
        """What is directly in a directory.

        Raises:
            StatusError: It cannot be listed.
            Corrupt: It has no end, or names that are not the files' own.
        """
        try:
            here, items = await self._items(share, path)
        except StatusError as error:
            if error.status in MISSING:
                return Directory(problem=NAMES[error.status])
            raise
        for item in items:
            if may_be_mangled(item.name):
                await self._check_name(share, directory, path, item)
        return self._directory(directory, here, items)

    def _directory(self, directory: str, here: int, items: Iterable[DirectoryItem]) -> Directory:
        """The directory; Samba follows links, and one to a directory above has no end."""
        entries, directories = list[Entry](), list[str]()
        above = self._above.get(directory, frozenset()) | {here}
        for item in items:
            name = join(directory, self._plain(directory, item.name))
            if is_temporary(name):
                continue
            if item.attributes.flags & IS_DIRECTORY:
                if not here or item.attributes.file_id not in above:
                    self._above[name] = above
                    directories.append(name)
            else:
                entries.append(entry_of(name, item.attributes))
        return Directory(tuple(entries), directories=tuple(sorted(directories)))

    def _plain(self, directory: str, sent: str) -> str:
        if not sent or set(sent) & set("/\\\0"):
            what = f"the server lists an impossible name in {self._uri / directory}"
            raise Corrupt.of(what, ascii(sent[:200]), "Check the server")
        return plain_name(sent)

    async def _items(self, share: Share, path: str) -> tuple[int, list[DirectoryItem]]:
        """The server's number for the directory, and what is in it."""
        connection = share.connection
        first, second = await connection.call(_open(path), query_directory(LIST_BYTES))
        if first.status != SUCCESS:
            raise StatusError(first.status)
        handle, attributes = created(first)
        most = min(MORE_LIST_BYTES, share.negotiated.max_list, connection.max_payload)
        items: list[DirectoryItem] = []
        try:
            response = second
            while response.status == SUCCESS:
                before = len(items)
                items += directory_items(response)
                if len(items) > self._max_listed:
                    what = f"the listing of {self._uri} has no end"
                    measured = f"over {self._max_listed:,} names in one directory"
                    raise Corrupt.of(what, measured, "Name a directory further down")
                if len(items) == before and before:
                    break
                (response,) = await connection.call(query_directory(most, handle=handle))
            if response.status not in {SUCCESS, *NO_MORE}:
                raise StatusError(response.status)
        finally:
            await connection.call(close(handle))
        return attributes.file_id, items

    async def _check_name(self, share: Share, directory: str, path: str, item: DirectoryItem) -> None:
        """Raise `InvalidSpec` if the name is one that the server has made up for another."""
        sent = f"{path}\\{item.name}" if path else item.name
        _, response, _ = await answered(
            share.connection, create(sent, Access.ATTRIBUTES), query_name(), close()
        )
        real = last_component(real_path(response))
        if real != item.name:
            what = f"the server shows a file of {self._uri / directory} under a made-up name"
            measured = f"{item.name} for {real!a}, a name that Windows could not have"
            remedy = (
                "Rename it at its source, or have Samba send its characters (`vfs objects = catia fruit`, "
                "`fruit:encoding = native`)"
            )
            raise InvalidSpec.of(what, measured, remedy)

    async def names_like(self, share: Share, path: str, sent: str) -> list[str]:
        """The names in a directory that the server takes for this one; none if it does not exist."""
        first, second, _ = await share.connection.call(
            _open(path), query_directory(LIST_BYTES, sent), close()
        )
        if first.status in MISSING or second.status in NO_MORE:
            return []
        for response in (first, second):
            if response.status != SUCCESS:
                raise StatusError(response.status)
        return [item.name for item in directory_items(second)]
