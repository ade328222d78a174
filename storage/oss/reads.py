"""Reads of OSS that the connection pool leaves to the engine."""

from __future__ import annotations

import asyncio
import re

from podferry.contract.errors import Unavailable
from podferry.contract.manifest import Entry
from podferry.storage.checksum.checksums import matches
from podferry.storage.checksum.response_header import response_checksum
from podferry.storage.errors.translate import check_listed, store_error, too_short
from podferry.storage.oss.client import OssClient, OssRequest
from podferry.storage.oss.response import OssResponse

COMPLETE_SIZE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
RANGE_BEHAVIOR = {"x-oss-range-behavior": "standard"}
"""Otherwise OSS answers a range past the end with the complete object: "GetObject", its API reference."""


async def stat(client: OssClient, name: str) -> Entry:
    """See `Store.stat`."""
    headers = (await client.send(OssRequest("HEAD", name))).headers
    size = headers.get("Content-Length", "")
    if not size.isdecimal():
        uri = client.access.uri / name
        raise Unavailable.of(f"the store did not say the size of {uri}", size or "no size", "Try again")
    return Entry(name, int(size), headers.get("ETag", ""))


async def read(
    client: OssClient, name: str, start: int, length: int | None, tag: str, size: int | None
) -> memoryview:
    """See `Store.read`, for at least one byte or the complete object, whose checksum is compared."""
    headers = {"If-Match": tag} if tag else {}
    if length is not None:
        headers |= {"Range": f"bytes={start}-{start + length - 1}", **RANGE_BEHAVIOR}

    def body(response: OssResponse) -> memoryview:
        complete = _complete_size(response, start)
        if complete is None:
            raise store_error("other response", client.location, name, f"HTTP {response.status}")
        check_listed(client.location, Entry(name, complete), "", size)
        expected = complete if length is None else length
        if len(response.body) < expected <= complete - start:
            evidence = f"{len(response.body)} of {expected} bytes came"
            raise store_error("cut", client.location, name, evidence)
        if len(response.body) != expected:
            raise too_short(client.location, name, start, expected, f"{len(response.body)} bytes came")
        return memoryview(response.body)

    request = OssRequest("GET", name, headers=headers, document=False)
    response = await client.fetch(request, lambda found: (found, body(found)))
    if length is None:
        await _compare(client, name, response[0])
    return response[1]


def _complete_size(response: OssResponse, start: int) -> int | None:
    """Bytes of the complete object; None if the response is for another range."""
    if response.status == 200 and start == 0:
        stated = response.headers.get("Content-Length", "")
        return int(stated) if stated.isdecimal() else None
    found = COMPLETE_SIZE.fullmatch(response.headers.get("Content-Range", ""))
    return int(found[3]) if found and response.status == 206 and int(found[1]) == start else None


async def _compare(client: OssClient, name: str, response: OssResponse) -> None:
    """Raise if the bytes of a complete object do not have its checksum."""
    lines = "".join(f"{field}: {value}\r\n" for field, value in response.headers.items())
    head = f"HTTP/1.1 200 OK\r\n{lines}".encode(errors="replace")
    expected = response_checksum(head, Entry(name, len(response.body)))
    if expected is not None and not await asyncio.to_thread(matches, expected, response.body):
        raise store_error("damaged", client.location, name, f"not its {expected.kind}")
