"""Why a server has not stored a file, where the status of its response has several meanings.

Go's server, which rclone has, responds 405 to a PUT whose body it cannot write, for whatever reason, and 404
or 409 if it is read-only. To MKCOL it responds 405 if something is there, and also if nothing may be created.
Source: `handlePut` and `handleMkcol` of golang.org/x/net/webdav; rclone 1.75.2 was run.
"""

from __future__ import annotations

from podferry.contract.errors import FerryError, Unavailable
from podferry.contract.uri import Uri
from podferry.storage.object_names import join
from podferry.storage.webdav.client import (
    FAILED,
    METHOD_NOT_ALLOWED,
    REDIRECTED,
    UNCLEAR_TO_MKCOL,
    DavClient,
)
from podferry.storage.webdav.errors import not_allowed, not_directory, not_written, removed


class Refusals:
    """Finds out what a server means.

    Attributes:
        has_stored: Whether it has stored a file before: then what it refuses may be an outage.
    """

    def __init__(self, client: DavClient) -> None:
        self._client = client
        self.has_stored = False

    async def error(self, name: str, status: int, sent: int) -> FerryError:
        """The error for a PUT.

        Args:
            name: Of a file that nobody else uses; it may be there afterwards.
            status: One of `UNCLEAR_TO_PUT`.
            sent: Bytes of the body.

        Raises:
            aiohttp.ClientError: The server refuses further requests.
        """
        directory = join(self._client.uri.key, name).rpartition("/")[0]
        measured = f"HTTP {status} to PUT, {sent} bytes"
        if status == FAILED:
            return not_written(self._uri(directory), measured)
        if status == METHOD_NOT_ALLOWED:
            if self.has_stored or (sent and await self._stores_empty(name)):
                return not_written(self._uri(directory), measured)
        elif error := await self._directory_error(directory, measured):
            return error
        return self._not_allowed("files", directory, measured)

    async def _stores_empty(self, name: str) -> bool:
        """Whether an empty file can be stored: then there may be no space left for another one."""
        return await self._client.put(name, b"") < REDIRECTED

    async def _directory_error(self, path: str, measured: str) -> FerryError | None:
        """The error if a directory is missing or none; None if a file could be there."""
        missing, is_directory = "", await self._client.is_directory(path)
        while is_directory is None and path:
            missing, path = path, path.rpartition("/")[0]
            is_directory = await self._client.is_directory(path)
        if is_directory is False:
            return not_directory(self._uri(path))
        if not missing:
            return None
        status = await self._client.make_directory(missing)
        # Another upload may have made it meanwhile.
        if status in UNCLEAR_TO_MKCOL and not await self._client.is_directory(missing):
            return self._not_allowed("directories", path, f"HTTP {status} to MKCOL {missing}/")
        return removed(self._uri(missing), measured)

    def _not_allowed(self, what: str, directory: str, measured: str) -> FerryError:
        error = not_allowed(self._uri(directory), what, measured)
        return Unavailable(*error.problems) if self.has_stored else error

    def _uri(self, path: str) -> Uri:
        """Of a path that begins at the server's root."""
        return self._client.uri.root / path if path else self._client.uri.root
