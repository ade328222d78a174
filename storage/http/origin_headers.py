"""Header fields with credentials that go to one server, and to no other that it redirects to."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp
from yarl import URL

from podferry.contract.errors import InvalidSpec
from podferry.contract.location_guards import Guards, source_problem
from podferry.storage.credentials.refresh import RefreshedValue


class OriginHeaders:
    """Adds the fields to each request of a session, also to one that follows a redirection; for aiohttp.

    A request to another server has none of them, and none may go to a metadata service, or to where the
    policy allows no sources: its response would be a file of the dataset.
    """

    def __init__(
        self, url: str, headers: RefreshedValue[Mapping[str, str]], allowed_sources: Guards = ()
    ) -> None:
        """Prepare for the server of a URL; `allowed_sources` are for the other servers."""
        self._url, self._headers, self._allowed = URL(url), headers, allowed_sources

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """See `aiohttp.ClientMiddlewareType`."""
        if is_same_server(self._url, request.url):
            await self._headers.refresh()
            request.headers.update(self._headers.value or {})
        elif problem := source_problem(f"{self._url} redirects", _location(request.url), self._allowed):
            raise InvalidSpec(problem)
        return await handler(request)


def _location(url: URL) -> str:
    """Without the query, which may be a signature."""
    return f"{url.origin()}{url.path}"


def is_same_server(server: URL, other: URL) -> bool:
    """Whether credentials of a server may go to an address: it is the same, or the same over TLS."""
    ports = (server.scheme, server.port), (other.scheme, other.port)
    return server.host == other.host and (ports[0] == ports[1] or ports == (("http", 80), ("https", 443)))
