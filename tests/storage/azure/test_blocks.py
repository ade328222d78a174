"""Blocks whose store says little; tests/servers has the contract, on Azurite."""

import pytest
from aiohttp import web

from podferry.contract.errors import NotFound
from podferry.contract.uri import Uri
from podferry.storage.azure.blocks import block_id
from podferry.storage.checksum.checksums import crc64
from podferry.storage.factory import open_store
from podferry.storage.multipart import UploadedPart
from podferry.storage.store import StoreConfig
from tests.support.store_calls import PART

HELD = {"AZURE_STORAGE_ACCOUNT_NAME": "acc", "AZURE_STORAGE_SAS_TOKEN": "sp=w"}


@pytest.fixture
async def opened(answering, quick):
    """A store whose uploader may write but not read; and the requests."""
    seen, stores = [], []

    async def answer(request):
        seen.append((request.method, request.query.get("comp"), await request.read()))
        if request.method == "GET":
            return web.Response(status=403, headers={"x-ms-error-code": "AuthorizationPermissionMismatch"})
        return web.Response(status=201)

    endpoint = await answering(answer)

    def opened():
        stores.append(open_store(Uri("az", "box", "run"), StoreConfig(endpoint, credentials=HELD), quick))
        return stores[-1].multipart

    yield opened, seen
    for store in stores:
        await store.close()


def test_identifiers_have_one_length():
    found = {block_id("0123456789abcdef", number) for number in (0, 1, 49_999)}
    assert len(found) == 3
    assert {len(one) for one in found} == {44}


async def test_who_may_only_write_completes_an_upload(opened):
    make, seen = opened
    blocks = make()
    upload = await blocks.begin("a", PART)
    part = await blocks.send("a", upload, 1, b"0123")
    assert part == UploadedPart(1, "eb62f6b9306db575c2d596b1279627a4", crc64(b"0123"), 4)
    await blocks.complete("a", upload, [part])
    assert f"<Uncommitted>{block_id(upload, 1)}</Uncommitted>".encode() in seen[2][2]
    assert [request[:2] for request in seen] == [
        ("PUT", "block"),
        ("PUT", "block"),
        ("PUT", "blocklist"),
        ("GET", "blocklist"),
    ]


async def test_an_upload_that_cannot_be_seen_starts_again(opened):
    make, _ = opened
    upload = await make().begin("a", PART)
    with pytest.raises(NotFound, match="Start it again"):
        await make().send("a", upload, 1, b"0123")
