"""Header fields with credentials that go to one server, and to no other that it redirects to."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp
from yarl import URL

from podferry.contract.errors import InvalidSpec
from podferry.contract.location_guards import metadata_problem
from podferry.storage.credentials.refresh import RefreshedValue


class OriginHeaders:
    """Adds the fields to each request of a session, also to one that follows a redirection; for aiohttp.

    A request to another server has none of them, and none may go to a metadata service: its response would
    be a file of the dataset.
    """

    def __init__(self, url: str, headers: RefreshedValue[Mapping[str, str]]) -> None:
        """Prepare for the server of a URL."""
        self._url, self._headers = URL(url), headers

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """See `aiohttp.ClientMiddlewareType`."""
        if is_same_server(self._url, request.url):
            await self._headers.refresh()
            request.headers.update(self._headers.value or {})
        elif problem := metadata_problem(f"{self._url} redirects", str(request.url.origin())):
            raise InvalidSpec(problem)
        return await handler(request)


def is_same_server(server: URL, other: URL) -> bool:
    """Whether credentials of a server may go to an address: it is the same, or the same over TLS."""
    ports = (server.scheme, server.port), (other.scheme, other.port)
    return server.host == other.host and (ports[0] == ports[1] or ports == (("http", 80), ("https", 443)))
