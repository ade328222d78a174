import pytest
from msgspec.structs import replace

from podferry.contract.cache_api import HeldDataset, Holder
from podferry.contract.errors import NotFound
from podferry.contract.manifest import Entry, freeze
from podferry.storage.checksum.checksums import Checksum, ChecksumKind, crc64
from podferry.storage.holder.client import HolderClient
from podferry.storage.holder.store import HolderStore
from podferry.storage.memory.store import MemoryStore
from podferry.storage.request_builder import PartialRequestBuilder
from podferry.storage.store import WriteMode
from tests.support.holder_site import running_holder


@pytest.fixture
async def site(content, tmp_path):
    """A store that has everything at a holder, and what it asks of the origin."""
    async with running_holder(content.uri, tmp_path / "held") as (stage, holder):
        client = HolderClient(holder)
        held = await client.dataset(str(content.uri))
        store = HolderStore(MemoryStore(content.uri), client, held)
        content.calls.clear()
        yield store, stage
        await store.close()


def reads(content):
    return [name for call, name in content.calls if call == "read"]


async def test_it_reads_from_the_holder(site, content):
    store, _ = site
    entry = await store.stat("a/1")
    assert await store.read("a/1") == b"one"
    assert await store.read("a/1", 1, 1, entry.tag, entry.size) == b"n"
    assert await store.read("a/1", 1) == b"ne"
    assert reads(content) == []


async def test_what_the_holder_does_not_have_is_the_origins(site, content):
    store, stage = site
    content.objects["d/new"] = b"new"
    assert await store.read("new") == b"new"
    with pytest.raises(NotFound):
        await store.read("missing")
    (stage.root / "a/1").unlink()
    assert await store.read("a/1") == b"one"
    assert reads(content) == ["new", "missing", "a/1"]


async def test_another_version_is_the_origins(site, content):
    store, _ = site
    content.objects["d/a/1"] = b"newer"
    now = await store.stat("a/1")
    assert await store.read("a/1", 0, 5, now.tag, now.size) == b"newer"
    assert store.checksum_of(now) is None


async def test_damaged_bytes_are_not_taken(site, content):
    store, stage = site
    (stage.root / "a/1").write_bytes(b"0ne")
    assert await store.read("a/1") == b"one"
    assert reads(content) == ["a/1"]


async def test_checksums_are_those_of_the_holder(site):
    store, _ = site
    entry = await store.stat("a/2")
    assert store.checksum_of(entry) == Checksum(ChecksumKind.CRC64NVME, crc64(b"two").to_bytes(8, "big"))
    assert store.checksum_of(Entry("a/2", 3, "other")) is None


async def test_requests_name_the_version_by_its_digest(site):
    store, stage = site
    builder = store.request_builder
    request = builder.build(Entry("a b/#1", 9, '"tag"'), 2, 3)
    digest = stage.complete.document.manifest.digest
    assert request.startswith(f"GET /v1/files/{digest}/a%20b/%231 HTTP/1.1\r\n".encode())
    assert b"Range: bytes=2-4\r\n" in request
    assert b"If-Match" not in request


async def test_requests_are_for_what_the_holder_has(site):
    store, stage = site
    entries = stage.complete.document.manifest.entries
    builder = store.request_builder
    assert isinstance(builder, PartialRequestBuilder)
    assert all(builder.serves(entry) for entry in (*entries, store.bundle_of([0, 1], 6)))
    for entry in entries:
        assert not builder.serves(replace(entry, tag='"other"'))
        assert not builder.serves(replace(entry, size=entry.size + 1))
    assert not builder.serves(Entry("new", 3, '"tag"'))


async def test_a_token_is_sent(content, tmp_path):
    (tmp_path / "token").write_text("s3cret\n")
    client = HolderClient(Holder("http://127.0.0.1:1", tmp_path / "token"))
    store = HolderStore(MemoryStore(content.uri), client, EMPTY)
    await store.request_builder.prepare([])
    assert b"Authorization: Bearer s3cret\r\n" in store.request_builder.build(Entry("x", 1), 0, 1)


EMPTY = HeldDataset(freeze("memory://x", []), ())


async def test_everything_else_is_the_origins(site, content):
    store, _ = site
    assert sorted([entry.name async for entry in store.entries()]) == ["a/1", "a/2", "b"]
    assert await store.children() == ["a/", "b"]
    await store.write("c", b"new", WriteMode.CREATE)
    assert content.objects["d/c"] == b"new"
    await store.delete(["c"])
    assert "d/c" not in content.objects
    assert (store.uri, store.exclusive_create) == (content.uri, MemoryStore(content.uri).exclusive_create)


async def test_bundles_are_named_by_positions_in_the_manifest(site):
    store, stage = site
    manifest = stage.complete.document.manifest
    assert [store.position_of(entry) for entry in manifest.entries] == list(range(manifest.files))
    assert store.position_of(Entry("a/2", 3, "other")) is None
    bundle = store.bundle_of([0, 1], 6)
    request = store.request_builder.build(bundle, 0, 6)
    assert request.startswith(f"GET /v1/bundles/{manifest.digest}/0-1 HTTP/1.1\r\n".encode())
    assert b"Range" not in request


async def test_a_holder_that_does_not_say_that_it_has_bundles_is_not_asked_for_them(site):
    store, stage = site
    held = stage.complete.document
    earlier = HolderStore(store.origin, store._client, HeldDataset(held.manifest, held.checksums))
    assert held.bundles
    assert earlier.position_of(held.manifest.entries[0]) is None
