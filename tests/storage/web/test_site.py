"""Which client gets a page."""

from __future__ import annotations

from podferry.contract.uri import parse_uri
from podferry.storage.credentials.web import refreshed_headers
from podferry.storage.errors.translate import store_location
from podferry.storage.network.settings import DIRECT, read_network
from podferry.storage.store import StoreConfig
from podferry.storage.web.site import WebSite
from tests.support.web_server import Answer, ScriptedServer, moved

PAGE = Answer('<a href="b">b</a>')


def site_of(endpoint: str, limits, network=DIRECT) -> WebSite:
    location = store_location(parse_uri(f"{endpoint}/set"), endpoint, (), network)
    return WebSite(location, network, limits, refreshed_headers("HTTP_", endpoint, StoreConfig()))


async def test_the_general_client_follows_to_another_server(answering, quick) -> None:
    other = await answering(ScriptedServer({"/set/": PAGE}).handle)
    endpoint = await answering(ScriptedServer({"/set": moved(f"{other}/set/")}).handle)
    site = site_of(endpoint, quick)
    page = await site.page("set", f"{endpoint}/set")
    assert (page.text, page.address, page.statuses) == (PAGE.text, f"{other}/set/", (302, 200))
    await site.close()


async def test_a_proxy_gets_the_request(answering, quick) -> None:
    proxy = ScriptedServer({"*": PAGE})
    network = read_network({"HTTP_PROXY": await answering(proxy.handle)})
    site = site_of("http://data.example.test", quick, network)
    assert (await site.page("set", "http://data.example.test/set/")).text == PAGE.text
    assert proxy.requested == ["GET /set/"]
    await site.close()
