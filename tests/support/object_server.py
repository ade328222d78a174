"""An HTTP server of objects, and a prefetch from it whose fallback client records what it reads."""

from __future__ import annotations

import base64
import os

from aiohttp import web

from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.checksum.checksums import ChecksumKind, checksum_of
from tests.support.unsigned_requests import UnsignedRequestBuilder

RANGE = 64 * 1024
SETTINGS = PrefetchSettings(in_flight=4, range_bytes=RANGE, buffer_bytes=1 << 20, attempts=2, processes=1)
FILES = {
    "empty": b"",
    "d/one": b"1",
    **{f"d/small-{number}": os.urandom(3000 + number) for number in range(40)},
    "buffers": os.urandom(RANGE - 1),
    "large": os.urandom(9 * RANGE + 13),
    "e/larger": os.urandom(20 * RANGE),
}


class Objects:
    """An HTTP server.

    Attributes:
        requests: (method, name, start) of each.
        damaged: How many responses are still damaged in transit, by (name, start).
        short: The range whose response ends early, by (name, start).
        states_with_ranges: Whether a response with a range states the object's checksum, as GCS does.
        kind: Of the checksums that it states.
    """

    def __init__(self, kind=ChecksumKind.CRC64NVME):
        self.requests, self.damaged, self.kind = [], {}, kind
        self.gate = self.short = None
        self.states_with_ranges = False

    async def answer(self, request):
        name = request.match_info["name"]
        data, span = FILES[name], request.http_range
        start = span.start or 0
        body = data[start : span.stop]
        self.requests.append((request.method, name, start))
        if self.gate is not None and request.method == "GET":
            await self.gate(name, start)
        headers = {"ETag": tag(name), "Accept-Ranges": "bytes"}
        ranged = "Range" in request.headers
        if ranged:
            headers["Content-Range"] = f"bytes {start}-{start + len(body) - 1}/{len(data)}"
        if self.states_with_ranges:
            value = base64.b64encode(checksum_of(ChecksumKind.CRC32C, data).value).decode()
            headers["x-goog-hash"] = f"crc32c={value}"
        elif self.kind is not None and not ranged:
            value = base64.b64encode(checksum_of(self.kind, data).value).decode()
            headers[f"x-amz-checksum-{self.kind}"] = value
        if self.damaged.get((name, start), 0) and request.method == "GET":
            self.damaged[name, start] -= 1
            body = bytes([body[0] ^ 1]) + body[1:]
        if self.short == (name, start):
            return await self.cut(request, body, headers)
        return web.Response(body=body, status=206 if ranged else 200, headers=headers)

    async def cut(self, request, body, headers):
        answer = web.StreamResponse(status=206, headers=headers | {"Content-Length": str(len(body))})
        await answer.prepare(request)
        await answer.write(body[:1000])
        request.transport.close()
        return answer

    def fetched(self, name):
        return [start for method, found, start in self.requests if (method, found) == ("GET", name)]


def tag(name):
    return f'"{checksum_of(ChecksumKind.CRC64NVME, FILES[name]).value.hex()}-{len(FILES[name])}"'


class FallbackStore:
    """The store's own client: always right, unless `damaged`."""

    def __init__(self, request_builder):
        self.request_builder = request_builder
        self.reads, self.damaged = [], False

    async def read(self, name, start, length, tag, size):
        self.reads.append((name, start))
        data = bytearray(FILES[name][start : start + length])
        if self.damaged:
            data[0] ^= 1
        return memoryview(data)


class Rig:
    def __init__(self, stage, port, settings=SETTINGS):
        self.stage, self.settings = stage, settings
        self.fallback = FallbackStore(UnsignedRequestBuilder(port, checksum_needs_head=True))
        self.counters = TransferCounters()

    def prefetch(self):
        entries = [Entry(name, len(data), tag(name)) for name, data in FILES.items()]
        manifest = freeze("http://x", entries)
        plan = plan_fetch(manifest, self.stage.claim(manifest), self.settings)
        return Fetcher(plan, FetchSource(self.fallback), self.stage, self.settings, counters=self.counters)

    def held(self):
        paths = (path for path in self.stage.root.rglob("*") if path.is_file())
        found = {path.relative_to(self.stage.root).as_posix(): path for path in paths}
        return {name: path.read_bytes() for name, path in found.items() if not name.startswith(PARTIAL_DIR)}
