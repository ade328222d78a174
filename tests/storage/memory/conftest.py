import pytest

from podferry.contract.uri import parse_uri
from podferry.storage.memory.store import MemoryStore


@pytest.fixture
def store(fresh):
    return MemoryStore(
        parse_uri("memory://faults-" + fresh.replace("/", "-").replace(" ", "").replace("%", ""))
    )
