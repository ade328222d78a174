import base64

import pytest
from aiohttp import web

from podferry.contract.errors import NotFound, Unavailable
from podferry.storage.checksum.checksums import Checksum, ChecksumKind
from podferry.storage.s3.stored_object import describe
from podferry.storage.server_copy import StoredObject
from tests.support.scripted_s3 import CHECKSUM, there

CRC = base64.b64encode(b"12345678").decode()


async def test_size_and_checksum_are_read(server, parts):
    server.answers["stat"] = [there(10, **{CHECKSUM: CRC}), there(7)]
    checksum = Checksum(ChecksumKind.CRC64NVME, b"12345678")
    assert await describe(parts.client, "a") == StoredObject(10, checksum)
    assert await describe(parts.client, "a") == StoredObject(7)
    ((asked, _), _) = server.of("stat")
    assert asked.headers["x-amz-checksum-mode"] == "ENABLED"


async def test_a_checksum_of_checksums_is_ignored(server, parts):
    composite = {"x-amz-checksum-crc32c": "MTIzNA==", "x-amz-checksum-type": "COMPOSITE"}
    server.answers["stat"] = [there(10, **composite)]
    assert await describe(parts.client, "a") == StoredObject(10)


async def test_a_missing_object_is_not_found(server, parts):
    server.answers["stat"] = [lambda: web.Response(status=404)]
    with pytest.raises(NotFound):
        await describe(parts.client, "a")


async def test_a_response_without_a_size_is_temporary(server, parts):
    def chunked():
        response = web.Response()
        response.headers["Transfer-Encoding"] = "chunked"
        return response

    server.answers["stat"] = [chunked]
    with pytest.raises(Unavailable, match="did not say the size"):
        await describe(parts.client, "a")
