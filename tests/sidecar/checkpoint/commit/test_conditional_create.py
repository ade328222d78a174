"""A store that does not create conditionally is found out before training, and named."""

from __future__ import annotations

import errno
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from podferry.contract.errors import AccessDenied, InvalidSpec, Refused
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.conditional_create import create_checked
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.factory import open_store
from podferry.storage.memory.store import Content, Fault, MemoryStore
from podferry.storage.store import StoreConfig, WriteMode
from tests.support import scripted_s3

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


async def test_a_directory_that_cannot_be_made_is_no_missing_feature():
    store = lineage()
    in_the_way = InvalidSpec.of("/destination is a file, not a directory", remedy="Remove it")
    store.destination.faults.append(Fault("write", f"run/{NAME}", error=in_the_way))
    with pytest.raises(InvalidSpec, match="is a file, not a directory"):
        await create_checked(store, NAME, b"1")


async def test_a_place_where_nothing_can_be_made_is_no_missing_feature(monkeypatch, tmp_path):
    def missing(*arguments, **keywords):  # as below /proc
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(Path, "mkdir", missing)
    destination = open_store(parse_uri(f"file://{tmp_path}/out"), StoreConfig())
    with pytest.raises(InvalidSpec, match=r"cannot be created \(No such file"):
        await create_checked(LineageStore(destination, "run"), NAME, b"1")


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


@pytest.mark.parametrize(
    ("status", "said"), [(501, "HTTP 501 NotImplemented"), (400, "HTTP 400"), (200, "was created twice")]
)
async def test_a_service_over_http_is_refused_by_its_answer(status, said):
    server = scripted_s3.Server()
    refusal = partial(scripted_s3.error, status, "NotImplemented" if status == 501 else "InvalidArgument")
    server.answers["send"] = [refusal if status != 200 else partial(web.Response, headers={"ETag": '"1"'})]
    app = web.Application()
    app.router.add_route("*", "/{key:.*}", server.answer)
    async with TestServer(app) as running:
        credentials = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        config = StoreConfig(str(running.make_url("")).rstrip("/"), "us-east-1", credentials)
        destination = open_store(parse_uri("s3://bucket/base"), config)
        with pytest.raises(Refused, match=said):
            await create_checked(LineageStore(destination, "run"), NAME, b"1")
        await destination.close()
    assert all(request.headers["If-None-Match"] == "*" for request, _ in server.of("send"))
