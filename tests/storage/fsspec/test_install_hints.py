import sys

import fsspec
import pytest
from fsspec.registry import known_implementations

from podferry.contract.errors import UnknownScheme
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.fsspec import install_hints as schemes

REGISTRY = sys.modules["fsspec.registry"]
"""The module; `fsspec.registry` is a table in it."""


@pytest.mark.parametrize(
    ("scheme", "meant"), [("s4", "s3"), ("gcp", "gcs"), ("fiel", "file"), ("htps", "https")]
)
def test_a_mistyped_scheme_gets_a_suggestion(scheme, meant):
    with pytest.raises(UnknownScheme, match=f"Did you mean '{meant}'"):
        open_store(parse_uri(f"{scheme}://b/x"))


def test_an_unknown_scheme_gets_the_list_of_known_ones():
    with pytest.raises(UnknownScheme, match=r"Known schemes: .*s3"):
        open_store(parse_uri("quux-quux-quux://b/x"))


@pytest.mark.parametrize("scheme", schemes.EXTRAS)
def test_a_missing_package_gets_its_install_command(scheme, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(REGISTRY, "get_filesystem_class", missing)
    extra = schemes.EXTRAS[scheme]
    with pytest.raises(UnknownScheme, match=rf"pip install 'podferry\[{extra}\]'"):
        open_store(parse_uri(f"{scheme}://b/x?engine=fsspec"))


async def test_a_package_missing_at_the_first_call_gets_its_install_command(monkeypatch):
    def missing(*_, **__):
        raise ImportError("pyarrow")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    store = open_store(parse_uri("hdfs://name/x"))
    with pytest.raises(UnknownScheme, match=r"pip install 'podferry\[hdfs\]'"):
        await store.stat("y")
    await store.close()


def test_every_scheme_that_fsspec_knows_opens_or_gets_a_remedy(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(REGISTRY, "get_filesystem_class", missing)
    for scheme in known_implementations:
        if scheme.isascii() and "_" not in scheme and scheme not in ("file", "local"):
            with pytest.raises(UnknownScheme) as caught:
                open_store(parse_uri(f"{scheme}://b/x?engine=fsspec"))
            assert caught.value.problems[0].remedy
