"""A plain web server as the endpoint of an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.nginx import nginx
from tests.support.real_servers import AZURITE_ACCOUNT, AZURITE_KEY
from tests.support.store_calls import all_calls

KEYS = {
    "gs": {"GOOGLE_SKIP_SIGNATURE": "true"},
    "az": {"AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY},
    "s3": {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"},
}


@pytest.mark.parametrize("scheme", KEYS)
async def test_it_is_named_as_what_it_is_not(scheme: str, tmp_path: Path) -> None:
    for folder in ("files", "own"):
        (tmp_path / folder).mkdir()
    directives = "client_max_body_size 0;"  # for 405 instead of 413, which a gateway may send as well
    with nginx(tmp_path / "files", tmp_path / "own", directives) as address:
        config = StoreConfig(f"http://{address}", credentials=KEYS[scheme])
        store = open_store(parse_uri(f"{scheme}://bucket/x"), config)
        found = await all_calls(store)
        await store.close()
    for error in found:
        assert type(error) is InvalidSpec, error
        assert "does not respond as" in str(error)
        assert "<html>" in str(error)
