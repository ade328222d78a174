"""The contract on real WebDAV servers, and what else they do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from podferry.contract.uri import Uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits
from tests.support.store_contract import *  # noqa: F403
from tests.support.webdav_servers import KEYS, SERVERS

CONFIG = StoreConfig(credentials=KEYS)
LIMITS = Limits(part_bytes=5 << 20)


@pytest.fixture(scope="module", params=SERVERS)
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    files, own = (tmp_path_factory.mktemp(f"{request.param}-{name}") for name in ("files", "own"))
    with SERVERS[request.param](files, own) as address:
        yield address


@pytest.fixture
def refused_characters(request: pytest.FixtureRequest) -> str:
    """WsgiDAV cuts the target of a move at `?` and `;`, although they are encoded."""
    return "?;#" if request.node.callspec.params["address"] == "wsgidav" else ""


@pytest.fixture
async def store(address: str, fresh: str):
    store = open_store(Uri("webdav", address, fresh), CONFIG, LIMITS)
    yield store
    await store.close()
