"""A web server: its pages, and what it says about its files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from podferry.contract.location_guards import Guards
from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.network.settings import Network
from podferry.storage.timeouts_and_limits import Limits
from podferry.storage.web.page import WebPage
from podferry.storage.web.plain_pages import PlainPages

if TYPE_CHECKING:
    from podferry.storage.web.general_client import GeneralClient


class WebSite:
    """A web server, with the credentials for it.

    Attributes:
        location: For messages.
    """

    def __init__(
        self,
        location: StoreLocation,
        network: Network,
        limits: Limits,
        headers: RefreshedValue[Mapping[str, str]],
        allowed_sources: Guards = (),
    ) -> None:
        """Prepare; `allowed_sources` are for the servers that this one redirects to."""
        self.location, self._allowed_sources = location, allowed_sources
        self._network, self._limits, self._headers = network, limits, headers
        self._plain = None if location.proxy else PlainPages(location, network, limits, headers)

    @cached_property
    def general(self) -> GeneralClient:
        """The client for everything; takes long the first time, as it imports aiohttp."""
        session = import_module("podferry.storage.http.session").WebSession(
            self.location.endpoint, self._network, self._limits, self._headers, self._allowed_sources
        )
        module = import_module("podferry.storage.web.general_client")
        client: GeneralClient = module.GeneralClient(session, self.location)
        return client

    async def page(self, name: str, url: str, *, sniff: bool = False) -> WebPage:
        """The page at a URL, which is that of `name`.

        Args:
            name: Relative to the store, for messages.
            url: Encoded.
            sniff: Whether to look if what is declared as HTML is HTML.

        Raises:
            FileNotFoundError: There is no such page.
            NotADirectoryError: It is not HTML.
            FerryError: It is empty or not complete, or the server redirects without end.
            What the clients raise: The server does not respond as it should.
        """
        found = await self._plain.page(name, url) if self._plain is not None and not sniff else None
        return found or await self.general.page(name, url, sniff=sniff)

    async def close(self) -> None:
        """Close the connections."""
        if self._plain is not None:
            await self._plain.close()
        if "general" in self.__dict__:
            await self.general.close()
