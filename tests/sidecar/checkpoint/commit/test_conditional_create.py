"""A store that does not create conditionally is found out before training, and named."""

from __future__ import annotations

import pytest

from podferry.contract.errors import AccessDenied, InvalidSpec, Refused
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.conditional_create import create_checked
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.memory.store import Content, Fault, MemoryStore
from podferry.storage.store import WriteMode

NAME = ".podferry/writers/me.json"


class Careless(MemoryStore):
    """A store that ignores the condition of a create."""

    async def write(self, name, body, mode=WriteMode.OVERWRITE):
        await super().write(name, body)


def lineage(kind=MemoryStore):
    return LineageStore(kind(parse_uri("memory://remote/base"), Content()), "run")


async def test_an_object_is_created_once():
    store = lineage()
    assert await create_checked(store, NAME, b"1")
    assert not await create_checked(store, NAME, b"2")
    assert await store.read(NAME) == b"1"
    assert [call for call, _ in store.destination.content.calls] == ["write", "write", "write", "read"]


async def test_a_store_that_ignores_the_condition_is_refused():
    with pytest.raises(Refused, match="replaces an object that it should only create"):
        await create_checked(lineage(Careless), NAME, b"1")


async def test_a_store_that_does_not_know_the_condition_is_refused():
    store = lineage()
    unsupported = InvalidSpec.of("the store does not support this operation on x", "HTTP 501 NotImplemented")
    store.destination.faults.append(Fault("write", f"run/{NAME}", error=unsupported))
    with pytest.raises(Refused, match="HTTP 501 NotImplemented") as refused:
        await create_checked(store, NAME, b"1")
    assert "cannot create an object only if it does not exist" in refused.value.problems[0].what
    assert "another destination" in refused.value.problems[0].remedy


async def test_other_refusals_stay_what_they_are():
    store = lineage()
    store.destination.faults.append(Fault("write", f"run/{NAME}", error=AccessDenied.of("no")))
    with pytest.raises(AccessDenied):
        await create_checked(store, NAME, b"1")


async def test_a_store_without_atomic_creation_is_not_asked_twice(monkeypatch):
    monkeypatch.setattr(Careless, "exclusive_create", False)
    store = lineage(Careless)
    assert await create_checked(store, NAME, b"1")
    assert len(store.destination.content.calls) == 1
