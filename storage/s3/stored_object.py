"""What S3 says about a stored object, its checksum included."""

from __future__ import annotations

from podferry.contract.errors import Unavailable
from podferry.contract.manifest import Entry
from podferry.storage.checksum.response_header import response_checksum
from podferry.storage.http.store_client import StoreRequest
from podferry.storage.s3.client import S3Client
from podferry.storage.server_copy import StoredObject


async def describe(client: S3Client, name: str) -> StoredObject:
    """An object's size and checksum.

    Raises:
        NotFound: There is no such object.
        Unavailable: The response has no size.
    """
    request = StoreRequest("HEAD", name, headers={"x-amz-checksum-mode": "ENABLED"})
    headers = (await client.send(request)).headers
    size = headers.get("Content-Length", "")
    if not size.isdecimal():
        uri = client.location.uri / name
        raise Unavailable.of(f"the store did not say the size of {uri}", size or "no size", "Try again")
    lines = [f"{field}: {value}\r\n" for field, value in headers.items()]
    head = "HTTP/1.1 200 OK\r\n" + "".join(lines)
    return StoredObject(int(size), response_checksum(head.encode(errors="replace"), Entry(name, int(size))))
