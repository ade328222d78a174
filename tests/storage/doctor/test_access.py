"""What credentials and the store allow, examined by whole diagnoses."""

from aiohttp import web

from podferry.contract.uri import parse_uri
from podferry.storage.doctor.finding import Outcome
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig, WriteMode
from tests.support.doctor_site import findings, outcomes, unused
from tests.support.store_calls import KEYS


async def test_an_empty_place(tmp_path):
    found = await findings(str(tmp_path / "new"), write=True)
    assert outcomes(found)["list"] is Outcome.LIMITED
    assert outcomes(found)["read"] is Outcome.SKIPPED
    assert outcomes(found)["exclusive commit"] is Outcome.OK
    assert list((tmp_path / "new").iterdir()) == []


async def test_a_denied_listing_and_a_denied_write(answering):
    async def denied(request):
        body = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
        return web.Response(status=403, text=body, content_type="application/xml")

    config = StoreConfig(endpoint=await answering(denied), credentials=KEYS)
    found = await findings("s3://bucket/x", config, write=True)
    assert (found["list"].outcome, found["write"].outcome) == (Outcome.FAILED, Outcome.FAILED)
    assert found["list"].remedy


async def test_a_store_that_two_writers_can_commit_to(monkeypatch):
    uri = unused()
    store = open_store(parse_uri(uri))
    original = type(store).write

    async def overwriting(self, name, body, mode=None):
        await original(self, name, body)

    monkeypatch.setattr(type(store), "write", overwriting)
    found = await findings(uri, write=True)
    assert found["exclusive commit"].outcome is Outcome.FAILED
    assert found["exclusive commit"].measured == "8 of 8 writers of one name succeeded"


async def test_a_store_without_exclusive_creation_says_how_it_is_safe(monkeypatch):
    uri = unused()
    monkeypatch.setattr(type(open_store(parse_uri(uri))), "exclusive_create", False)
    found = await findings(uri, write=True)
    assert found["exclusive commit"].outcome is Outcome.LIMITED
    assert "one training at a time" in found["exclusive commit"].remedy.lower()


async def test_a_store_that_turns_out_not_to_create_exclusively(monkeypatch):
    uri = unused()
    kind = type(open_store(parse_uri(uri)))
    original = kind.write

    async def write(self, name, body, mode=WriteMode.OVERWRITE):
        if mode is WriteMode.CREATE:
            monkeypatch.setattr(kind, "exclusive_create", False)
        await original(self, name, body)

    monkeypatch.setattr(kind, "write", write)
    found = await findings(uri, write=True)
    assert found["exclusive commit"].outcome is Outcome.LIMITED
