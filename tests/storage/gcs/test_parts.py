"""Parts whose store says little; tests/servers has the contract, on fake-gcs-server."""

import pytest
from aiohttp import web

from podferry.contract.errors import NotFound, Unavailable
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.gcs.client import GcsClient
from podferry.storage.gcs.parts import GcsParts, part_name
from podferry.storage.multipart import UploadedPart
from podferry.storage.network.settings import DIRECT
from podferry.storage.object_names import is_temporary


def test_parts_are_hidden_from_listings():
    found = {part_name("0123456789", number) for number in (0, 1, 1024, (1 << 20) + 31)}
    assert len(found) == 4
    assert all(is_temporary(name) for name in found)


@pytest.fixture
async def parts(answering, quick):
    """An upload whose responses the test sets, by the last part of the path."""
    responses, seen = {}, []

    async def answer(request):
        seen.append((request.method, request.path))
        return web.json_response(responses.get(request.path.rpartition("/")[2], {}))

    url = await answering(answer)
    location = StoreLocation(Uri("gs", "bucket", "run"), url)
    made = GcsParts(GcsClient(url, location, DIRECT, quick, dict))
    yield made, responses, seen
    await made.close()


async def test_an_object_with_another_checksum_is_refused(parts):
    made, responses, seen = parts
    item = {"name": f"run/{part_name('0123456789', 1)}", "generation": "7", "crc32c": "AAAAAQ=="}
    responses["o"] = {"items": [item]}
    responses["compose"] = {"size": "4", "crc32c": "AAAAAg=="}
    with pytest.raises(Unavailable, match="composed damaged"):
        await made.complete("a", "0123456789", [UploadedPart(1, "AAAAAQ==", 0, 4)])
    assert [method for method, _ in seen] == ["GET", "POST"]


async def test_a_replaced_part_is_not_used(parts):
    made, responses, seen = parts
    item = {"name": f"run/{part_name('0123456789', 1)}", "generation": "7", "crc32c": "AAAAAg=="}
    responses["o"] = {"items": [item]}
    with pytest.raises(NotFound, match="Start it again"):
        await made.complete("a", "0123456789", [UploadedPart(1, "AAAAAQ==", 0, 4)])
    assert {method for method, _ in seen} == {"GET"}
