"""The complete prefetch from an HTTP server, with a fallback client that records what it reads."""

import asyncio
import base64
import errno
import os
import signal
import socket
import subprocess
import sys

import msgspec
import pytest
import stamina
from aiohttp import web

from podferry.contract.errors import Corrupt, Refused
from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch import pool_runner
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.fetch.workers import handle, processes
from podferry.sidecar.fetch.workers.main import RemoteJobs
from podferry.sidecar.fetch.workers.protocol import JobBatch, JobMessage, StartMessage
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.checksum.checksums import ChecksumKind, checksum_of
from podferry.storage.request_builder import Origin
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


@pytest.fixture(autouse=True)
def no_waiting():
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


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


@pytest.fixture
async def objects():
    return Objects()


@pytest.fixture
async def port(objects):
    app = web.Application(client_max_size=0)
    app.router.add_route("*", "/{name:.*}", objects.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.fixture
def stage(tmp_path):
    (tmp_path / "stage").mkdir()
    made = StagingDir(tmp_path / "stage", tmp_path / "ownership", 0o640)
    yield made
    made.close()


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


@pytest.mark.parametrize("processes", [1, 2])
async def test_the_pools_alone_fetch_everything(stage, port, objects, processes, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=processes))
    await rig.prefetch().run()
    assert rig.held() == FILES
    assert not rig.fallback.reads
    assert rig.counters.files == len(FILES)
    assert rig.counters.bytes == sum(map(len, FILES.values()))
    assert rig.counters.connections == rig.counters.handed_over == rig.counters.discarded == 0
    assert {path.stat().st_mode & 0o777 for path in stage.root.rglob("*") if path.is_file()} == {0o640}
    assert sorted(objects.fetched("large")) == list(range(0, len(FILES["large"]), RANGE))


@pytest.mark.parametrize("kind", [ChecksumKind.CRC64NVME, ChecksumKind.CRC32C, ChecksumKind.SHA256])
@pytest.mark.parametrize("processes", [1, 2])
async def test_damage_in_transit_is_found_and_repaired(stage, port, objects, kind, processes, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    objects.kind = kind
    objects.damaged = {("d/small-7", 0): 1, ("buffers", 0): 1, ("large", 3 * RANGE): 1}
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=processes))
    await rig.prefetch().run()
    assert rig.held() == FILES
    assert {name for name, _ in rig.fallback.reads} == {"d/small-7", "buffers", "large"}
    # One range after the other until it matches: none after the damaged one.
    assert [start for name, start in rig.fallback.reads if name == "large"][-1] == 3 * RANGE


async def test_without_verification_damage_is_kept(stage, port, objects):
    """So verification is what finds it above."""
    objects.damaged = {("d/small-7", 0): 1}
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=1, verify=False))
    await rig.prefetch().run()
    assert {name for name, data in rig.held().items() if data != FILES[name]} == {"d/small-7"}


async def test_a_range_that_falls_back_is_not_compared_with_the_checksum_of_the_object(stage, port, objects):
    """Some stores state the checksum of the object with each range."""

    class Stating(UnsignedRequestBuilder):
        checksum_needs_head = False

    objects.states_with_ranges = True
    objects.short = ("large", 3 * RANGE)
    rig = Rig(stage, port)
    rig.fallback.request_builder = Stating(port)
    await rig.prefetch().run()
    assert rig.held() == FILES
    assert rig.fallback.reads == [("large", 3 * RANGE)]


@pytest.mark.parametrize("name", ["d/small-7", "large"])
async def test_what_never_matches_its_checksum_is_named(stage, port, objects, name):
    objects.damaged = {(name, 0): 99}
    rig = Rig(stage, port)
    rig.fallback.damaged = True
    with pytest.raises(Corrupt, match=f"{name} is damaged.*does not have its checksum.*found crc64nvme"):
        await rig.prefetch().run()
    assert name not in rig.held()


async def test_a_later_start_resumes_within_large_files(stage, port, objects):
    reached, released = asyncio.Event(), asyncio.Event()

    async def gate(name, start):
        if name == "e/larger" and start >= 10 * RANGE:
            reached.set()
            await released.wait()

    objects.gate = gate
    rig = Rig(stage, port)
    task = asyncio.create_task(rig.prefetch().run())
    await reached.wait()
    while len(objects.fetched("e/larger")) < 11:  # noqa: ASYNC110 - the pool has no event for it
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    released.set()
    before, objects.gate = set(objects.fetched("e/larger")), None
    objects.requests.clear()
    await rig.prefetch().run()
    assert rig.held() == FILES
    assert not {start for start in before if start < 10 * RANGE} & set(objects.fetched("e/larger"))
    assert len(objects.fetched("e/larger")) >= 10


async def test_if_a_worker_dies_its_jobs_fall_back(stage, port, objects, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    started, acquire = [], processes.acquire

    def watched():
        started.append(acquire())
        return started[-1]

    monkeypatch.setattr(processes, "acquire", watched)
    killed = False

    async def gate(name, start):
        """Kills it while one of the small files is in flight."""
        nonlocal killed
        while not started:  # noqa: ASYNC110 - the process has no event for its start
            await asyncio.sleep(0.01)
        if not killed and name.startswith("d/small"):
            killed = True
            os.kill(started[0].pid, signal.SIGKILL)

    objects.gate = gate
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=2))
    await rig.prefetch().run()
    assert killed
    assert rig.held() == FILES


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_full_volume_is_reported_from_any_process(stage, port, objects, processes, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)

    def write_small(number, data, entry):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # Worker processes write as they should; only this one fails.
    monkeypatch.setattr(stage, "write_small", write_small)
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=processes))
    with pytest.raises(Refused, match="the volume was full"):
        await rig.prefetch().run()


async def test_if_a_worker_with_a_full_queue_dies_its_jobs_fall_back(stage, port, monkeypatch):
    """No report frees its queue then: its jobs fall back."""
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    monkeypatch.setattr(handle, "MAX_PENDING_JOBS", 4)

    def acquire():
        ours, theirs = socket.socketpair()
        with theirs:
            words = [sys.executable, "-c", "import time; time.sleep(1)"]
            process = subprocess.Popen(words, pass_fds=(theirs.fileno(),))
        return processes.WorkerProcess(process.pid, ours, process)

    monkeypatch.setattr(processes, "acquire", acquire)
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=2))
    await asyncio.wait_for(rig.prefetch().run(), 60)
    assert rig.held() == FILES


async def test_if_no_worker_can_be_started_one_process_is_enough(stage, port, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)

    def acquire():
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(processes, "acquire", acquire)
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=2))
    await rig.prefetch().run()
    assert rig.held() == FILES


async def test_a_batch_whose_read_was_cancelled_is_read_completely():
    """A pool that gives up is cancelled anywhere; what it was reading goes back to the agent."""
    reader = asyncio.StreamReader()
    job = JobMessage(1, Entry("a", 3), "a", 0, 3, "", None, None, b"GET")
    jobs = RemoteJobs(StartMessage(Origin("x", 1, tls=False), "/x", 0o644, True, False, 1), reader)
    frame = msgspec.msgpack.encode(JobBatch([job]))
    frame = len(frame).to_bytes(4, "big") + frame
    reader.feed_data(frame[:10])
    first = asyncio.create_task(jobs.next_batch())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    reader.feed_data(frame[10:])
    assert [found.number for found in await asyncio.wait_for(jobs.next_batch(), 10)] == [1]
