"""A lineage that several ranks write to."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from podferry.contract.uri import parse_uri
from podferry.storage.memory.store import Content, MemoryStore


@pytest.fixture
def site(quick_retries):
    """A lineage whose clock moves only if a test moves it."""
    content = Content()
    store = MemoryStore(parse_uri("memory://gang"), content)
    return SimpleNamespace(content=content, store=store, time=1000.0)
