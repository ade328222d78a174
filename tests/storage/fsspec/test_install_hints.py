import sys

import pytest
from fsspec.registry import known_implementations

from podferry.contract.errors import InvalidSpec, UnknownScheme
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.fsspec import install_hints
from podferry.storage.store import StoreConfig
from tests.support.store_calls import KEYS

REGISTRY = sys.modules["fsspec.registry"]
"""The module; `fsspec.registry` is a table in it."""


@pytest.fixture
def nothing_installed(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(REGISTRY, "get_filesystem_class", missing)
    monkeypatch.setattr("fsspec.get_filesystem_class", missing)
    monkeypatch.setattr("podferry.storage.fsspec.store.find_spec", lambda name: None)


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize("scheme", install_hints.EXTRAS)
def test_a_missing_package_gets_its_install_command(scheme):
    extra = install_hints.EXTRAS[scheme]
    with pytest.raises(UnknownScheme, match=rf"pip install 'podferry\[{extra}\]'"):
        open_store(parse_uri(f"{scheme}://b/x?engine=fsspec"))


@pytest.mark.usefixtures("nothing_installed")
def test_every_scheme_that_fsspec_knows_opens_or_gets_a_remedy():
    for scheme in known_implementations:
        if scheme.isascii() and "_" not in scheme and scheme not in ("file", "local"):
            with pytest.raises((UnknownScheme, InvalidSpec)) as caught:
                open_store(parse_uri(f"{scheme}://b/x?engine=fsspec"))
            assert caught.value.problems[0].remedy


async def test_a_package_missing_at_the_first_call_gets_its_install_command(monkeypatch):
    def missing(*_, **__):
        raise ImportError("aiobotocore")

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    store = open_store(parse_uri("s3://name/x?engine=fsspec"), StoreConfig(credentials=KEYS))
    with pytest.raises(UnknownScheme, match=r"pip install 'podferry\[s3fs\]'"):
        await store.stat("y")
    await store.close()
