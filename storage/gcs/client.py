"""Sends requests to the JSON API of Cloud Storage that gcsfs has no call for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlencode

import msgspec

from podferry.contract.errors import FerryError
from podferry.storage.errors.translate import StoreLocation, store_error
from podferry.storage.http.foreign_response import excerpt, is_foreign_page
from podferry.storage.http.store_client import StoreClient, StoreRequest, StoreResponse, StoreResponseError
from podferry.storage.network.settings import Network
from podferry.storage.object_names import join
from podferry.storage.timeouts_and_limits import Limits

Json = dict[str, Any]
T = TypeVar("T")


class GcsResponseError(StoreResponseError):
    """An error response: its status says what happened."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status}")
        self.status = status


class NotFromGcs(GcsResponseError):
    """A web server's page: the service and its emulators have errors of their own."""

    by_service = False

    def __init__(self, response: StoreResponse) -> None:
        super().__init__(response.status)
        self.detail = excerpt(response)


class GcsClient(StoreClient):
    """A client of one bucket; names are relative to the store.

    Source: "Objects" of the Cloud Storage JSON API reference.
    """

    def __init__(
        self,
        address: str,
        location: StoreLocation,
        network: Network,
        limits: Limits,
        token: Callable[[], Mapping[str, str]],
    ) -> None:
        """Prepare a client.

        Args:
            address: URL of the service.
            location: Of the store.
            network: Trusted certificates and proxies.
            limits: Timeouts and retries.
            token: Headers with the current token; it may block.
        """
        super().__init__(address, location, network, limits, None)
        self._token = token
        self._objects = f"/storage/v1/b/{quote(location.uri.bucket, safe='')}/o"

    def key(self, name: str) -> str:
        """The key of a name."""
        return join(self._prefix, name)

    async def insert(self, name: str, data: bytes | memoryview) -> Json:
        """Write an object that has no reader yet; its metadata."""
        query = {"uploadType": "media", "name": self.key(name)}
        headers = {"Content-Type": "application/octet-stream"}
        return await self._json(StoreRequest("POST", f"/upload{self._objects}", query, headers, data))

    async def metadata(self, name: str) -> Json:
        """The metadata of an object."""
        return await self._json(StoreRequest("GET", self._path(name)))

    async def listed(self, prefix: str) -> list[Json]:
        """The metadata of all objects whose keys begin with that of a name."""
        found: list[Json] = []
        query = {"prefix": self.key(prefix)}
        while True:
            page = await self._json(StoreRequest("GET", self._objects, query))
            found += page.get("items", [])
            if not page.get("nextPageToken"):
                return found
            query["pageToken"] = page["nextPageToken"]

    async def page(self, query: Mapping[str, str], parse: Callable[[StoreResponse], T]) -> T:
        """What `parse` makes of a page of a listing of the bucket."""
        return await self.fetch(StoreRequest("GET", self._objects, query), parse)

    async def compose(self, sources: list[tuple[str, str]], target: str, metadata: Mapping[str, str]) -> Json:
        """Make one object of up to 32 others, each a name and its generation."""
        body = {
            "sourceObjects": [
                {"name": self.key(name), "generation": generation} for name, generation in sources
            ],
            "destination": {"contentType": "application/octet-stream", "metadata": dict(metadata)},
        }
        path, headers = f"{self._path(target)}/compose", {"Content-Type": "application/json"}
        return await self._json(StoreRequest("POST", path, {}, headers, msgspec.json.encode(body)))

    async def delete(self, name: str) -> None:
        """Delete an object."""
        await self.send(StoreRequest("DELETE", self._path(name)))

    async def _json(self, request: StoreRequest) -> Json:
        return await self.fetch(request, _decoded)

    def _path(self, name: str) -> str:
        return f"{self._objects}/{quote(self.key(name), safe='')}"

    async def _translated(self, error: Exception, name: str) -> FerryError:
        """The error for a request's path: of an object, or of the bucket."""
        if name.endswith(self._objects):
            if type(error) is GcsResponseError and error.status == HTTPStatus.NOT_FOUND:
                return store_error("bucket", self.location)
            return await super()._translated(error, "")
        key = unquote(name.removeprefix(f"{self._objects}/").removesuffix("/compose"))
        return await super()._translated(error, key.removeprefix(self._prefix).removeprefix("/"))

    def _address(self, request: StoreRequest) -> str:
        """Requests have the path of the service in the place of a name."""
        query = self._encoded_query(request.query)
        return f"{self._url}{request.name}{'?' + query if query else ''}"

    def _encoded_query(self, query: Mapping[str, str]) -> str:
        return urlencode(query, quote_via=quote, safe="")

    def _signed(self, request: StoreRequest, url: str) -> tuple[str, Mapping[str, str]]:
        return url, {**request.headers, **self._token()}

    def _checked(self, response: StoreResponse) -> StoreResponse:
        if is_foreign_page(response):
            raise NotFromGcs(response)
        if response.status >= 300:
            raise GcsResponseError(response.status)
        return response


def _decoded(response: StoreResponse) -> Json:
    found: Json = msgspec.json.decode(response.text or "{}", type=dict)
    return found
