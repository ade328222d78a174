"""What the engines declare is what their stores can do."""

from importlib.metadata import EntryPoint

import pytest

from podferry.contract.errors import InvalidSpec, UnknownScheme
from podferry.contract.uri import ENGINES, Uri, parse_uri
from podferry.storage import engines
from podferry.storage.engine import Engine, Scheme
from podferry.storage.factory import open_store
from podferry.storage.memory.engine import MEMORY
from podferry.storage.memory.store import MemoryStore
from podferry.storage.store import StoreConfig
from tests.support.declared import declared, found_at

DECLARED = [
    pytest.param(engine, scheme, id=f"{engine.name} {scheme.names[0]}")
    for engine in engines.BUILT_IN
    for scheme in engine.schemes
    if not engine.requires and engine.name != "fsspec"
]
"""Those that need no other package: tests/servers/test_engines.py has the others."""
MINE = Engine(
    name="mine", store="podferry.storage.memory.store:open_memory", schemes=(Scheme(names=("mine",)),)
)


class Mine(EntryPoint):
    """An entry point whose object is here, not in a package."""

    def load(self):
        return {"mine": MINE, "broken": "text"}[self.name]


@pytest.fixture
def install(monkeypatch):
    """Installs a package with the entry point of a name."""
    engines.installed_engines.cache_clear()
    yield lambda name: monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [Mine(name, "package:name", group)]
    )
    engines.installed_engines.cache_clear()


@pytest.mark.parametrize(("engine", "scheme"), DECLARED)
async def test_a_store_can_do_what_its_engine_declares(engine, scheme):
    assert await found_at(engine, scheme) == declared(scheme)


def test_every_scheme_has_one_engine_and_names_differ():
    names = [name for engine in engines.BUILT_IN for name in engine.scheme_names]
    assert len(names) == len(set(names))
    assert tuple(engine.name for engine in engines.BUILT_IN) == ENGINES, "what ?engine= may name"
    assert len(set(ENGINES)) == len(ENGINES)


def test_a_package_adds_a_scheme(install):
    install("mine")
    assert isinstance(open_store(parse_uri("mine://m/x")), MemoryStore)
    with pytest.raises(UnknownScheme, match="Did you mean 'mine'"):
        open_store(parse_uri("mines://m/x"))


def test_what_is_installed_and_no_engine_is_refused(install):
    install("broken")
    with pytest.raises(InvalidSpec, match=r"not an Engine \(str, entry point 'broken'"):
        open_store(parse_uri("mine://m/x"))


def test_podferry_opens_its_own_schemes_before_those_of_packages(install):
    install("broken")
    assert engines.engine_of("memory") is MEMORY


def test_an_engine_opens_no_other_scheme(monkeypatch):
    monkeypatch.setattr(engines, "BUILT_IN", (*engines.BUILT_IN, MINE))
    uri = Uri("s3", "b", "x", (("engine", "mine"),))
    with pytest.raises(InvalidSpec, match="mine does not open s3://"):
        open_store(uri)


def test_an_engine_whose_package_is_missing_says_what_to_install(monkeypatch):
    lacking = Engine(
        name="lacking",
        store="none:None",
        schemes=(Scheme(names=("lack",)),),
        requires=("no_such_module",),
        extra="lack",
    )
    monkeypatch.setattr(engines, "BUILT_IN", (*engines.BUILT_IN, lacking))
    with pytest.raises(UnknownScheme, match=r"pip install 'podferry\[lack\]'"):
        open_store(parse_uri("lack://b/x"), StoreConfig())


@pytest.mark.parametrize(("scheme", "expected"), [("s3", "CRC64NVME"), ("az", "MD5"), ("ftp", ""), ("x", "")])
def test_the_checksums_of_a_scheme(scheme, expected):
    assert engines.checksums_of(scheme).partition(",")[0] == expected


@pytest.mark.parametrize(("scheme", "expected"), [("s3", True), ("ftp", False), ("x", True)])
def test_which_schemes_a_pool_may_read(scheme, expected):
    assert engines.has_connection_pool(scheme) is expected
