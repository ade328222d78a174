import asyncio
import shutil
from collections import Counter

import msgspec
import pytest
from aiohttp import ClientTimeout, web
from aiohttp.test_utils import TestServer

from podferry.cache.peers.file_log import FileLog
from podferry.cache.peers.shares import owner
from podferry.contract.cache_api import FILES_PATH, PROGRESS_PATH, PartNews, Progress
from podferry.contract.file_part import FilePart, parts_of
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.partial_file import JOURNAL_SUFFIX
from podferry.sidecar.fetch.rate_limit import RateLimit
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.storage.checksum.checksums import crc64
from podferry.storage.memory.store import Fault, MemoryStore
from tests.support.dataset_site import held
from tests.support.output_site import until
from tests.support.patience import PATIENCE
from tests.support.peer_site import PeerSite

FILES = {f"{n % 3}/{n}": bytes([n]) * (n * 40) for n in range(40)}


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A busy machine must not make holders give each other up."""
    for name in ("START_SECONDS", "DEAD_SECONDS", "STALL_SECONDS"):
        monkeypatch.setattr(f"podferry.cache.peers.peers.{name}", PATIENCE)
    monkeypatch.setattr("podferry.cache.peers.news_client.TIMEOUT", ClientTimeout(PATIENCE))


@pytest.fixture
def dataset(content):
    content.objects.clear()
    content.objects.update({f"d/{name}": data for name, data in FILES.items()})
    return content


@pytest.fixture
async def site(dataset, tmp_path):
    made = []

    def making(count, **settings):
        made.append(PeerSite(dataset.uri, tmp_path, count, **settings))
        return made[-1]

    yield making
    for one in made:
        await one.close()


def reads(content):
    return Counter(name for call, name in content.calls if call == "read")


async def complete(*stages):
    async with asyncio.timeout(PATIENCE):
        for stage in stages:
            while stage.complete is None:
                assert stage.failure is None, stage.failure
                await stage.wait(0.05)
    assert all(held(stage.root) == FILES for stage in stages)


@pytest.mark.parametrize("count", [2, 10])
async def test_holders_that_start_at_once_read_each_file_once(site, dataset, count):
    holders = site(count)
    await complete(*(holders.start(number) for number in range(count)))
    assert set(reads(dataset).values()) == {1}
    assert len(reads(dataset)) == sum(bool(data) for data in FILES.values())


async def test_holders_read_what_has_changed_once(site, dataset):
    holders = site(3)
    stages = [holders.start(number) for number in range(3)]
    await complete(*stages)
    dataset.calls.clear()
    changed = {f"{n % 3}/{n}": b"changed %d" % n for n in range(10, 20)}
    dataset.objects |= {f"d/{name}": data for name, data in changed.items()}
    for stage in stages:
        stage.ask_refresh()
    await until(lambda: not any(stage.refreshing for stage in stages))
    assert [held(stage.root) for stage in stages] == [{**FILES, **changed}] * 3
    assert reads(dataset) == dict.fromkeys(changed, 1)


async def test_a_holder_takes_what_has_changed_from_one_that_has_refreshed_before(site, dataset):
    holders = site(2)
    stages = [holders.start(number) for number in range(2)]
    await complete(*stages)
    dataset.calls.clear()
    dataset.objects["d/1/1"] = b"changed"
    for stage in stages:
        stage.ask_refresh()
        await until(lambda stage=stage: not stage.refreshing)
    assert reads(dataset) == {"1/1": 1}


async def test_a_new_holder_takes_everything_from_one_that_was_found(site, dataset):
    holders = site(2)
    await complete(holders.start(0, expected=0))
    await holders.stop(0)
    dataset.calls.clear()
    found = holders.start(0)
    await complete(found, holders.start(1))
    assert reads(dataset) == {}


class RecordedLimit(RateLimit):
    """Waits for nothing, and knows what was taken."""

    def __init__(self):
        super().__init__(1 << 40)
        self.taken = []

    async def take(self, count):
        self.taken.append((self.sharers, count))


async def test_holders_share_the_rate_of_their_source_and_take_each_byte_once(site, dataset):
    holders, limits = site(2), [RecordedLimit(), RecordedLimit()]
    await complete(*(holders.start(number, limit=limit) for number, limit in enumerate(limits)))
    taken = [one for limit in limits for one in limit.taken]
    assert {sharers for sharers, _ in taken} == {2}
    assert sum(count for _, count in taken) == sum(map(len, FILES.values()))


async def test_what_another_holder_sends_does_not_count_for_the_rate(site, dataset, fake):
    limit = RecordedLimit()
    await complete(site(1, extra=[fake.url]).start(0, limit=limit))
    assert limit.taken == []


class FakePeer:
    """Another holder, as far as the script goes.

    Attributes:
        has: The files that it says it has.
        claims: Those that it says it fetches.
        sends: What it sends for a file.
        hangs: Whether it never sends a file.
    """

    def __init__(self, content, digest=""):
        self.digest = digest
        self.has, self.claims = {}, []
        self.sends = lambda name: content.objects[f"d/{name}"]
        self.hangs, self.asked = False, Counter()
        self.never = asyncio.Event()

    def application(self):
        app = web.Application()
        app.router.add_get(PROGRESS_PATH, self.progress)
        app.router.add_get(f"{FILES_PATH}/{{digest}}/{{name:.+}}", self.file)
        return app

    async def progress(self, request):
        if request.query["log"]:
            await asyncio.sleep(0.05)
        news = (*map(PartNews, self.claims), *(PartNews(part, value) for part, value in self.has.items()))
        digest = self.digest or request.query["digest"]
        return web.Response(body=msgspec.json.encode(Progress("fake", "log", len(news), news, digest)))

    async def file(self, request):
        name = request.match_info["name"]
        self.asked[name] += 1
        if self.hangs:
            await self.never.wait()
        data, span = self.sends(name), request.http_range
        if span.start is None:
            return web.Response(body=data)
        headers = {"Content-Range": f"bytes {span.start}-{span.stop - 1}/{len(data)}"}
        return web.Response(status=206, body=data[span], headers=headers)


@pytest.fixture
async def fake(dataset):
    """Another holder, which has everything."""
    peer = FakePeer(dataset)
    async for entry in MemoryStore(dataset.uri).entries():
        peer.has[FilePart(entry, 0, entry.size)] = crc64(FILES[entry.name])
    dataset.calls.clear()
    server = TestServer(peer.application())
    await server.start_server()
    peer.url = f"{server.make_url('')}".rstrip("/")
    yield peer
    peer.never.set()
    await server.close()


async def test_what_another_holder_has_is_not_read_from_the_source(site, dataset, fake):
    await complete(site(1, extra=[fake.url]).start(0))
    assert reads(dataset) == {}


async def test_wrong_bytes_are_read_again_from_the_source(site, dataset, fake):
    fake.sends = lambda name: bytes(len(FILES[name]))
    await complete(site(1, extra=[fake.url]).start(0))
    assert set(reads(dataset)) == {f"{name}" for name, data in FILES.items() if data.strip(b"\0")}


async def test_another_holder_that_sends_nothing_is_given_up(site, dataset, fake, monkeypatch):
    monkeypatch.setattr("podferry.storage.http.pool.STALL_SECONDS", 0.2)
    fake.hangs = True
    await complete(site(1, extra=[fake.url]).start(0))
    assert set(reads(dataset).values()) == {1}


async def test_another_holder_that_claims_and_stalls_is_given_up(site, dataset, fake, monkeypatch):
    monkeypatch.setattr("podferry.cache.peers.peers.STALL_SECONDS", 0.3)
    fake.claims, fake.has = list(fake.has), {}
    await complete(site(1, extra=[fake.url]).start(0))
    assert set(reads(dataset).values()) == {1}


async def test_what_is_the_same_in_another_version_is_taken(site, dataset, fake):
    changed = next(name for name in FILES if FILES[name])
    dataset.objects[f"d/{changed}"] = FILES[changed] + b"new"
    fake.digest = "another"
    stage = site(1, extra=[fake.url]).start(0)
    async with asyncio.timeout(PATIENCE):
        while stage.complete is None:
            await stage.wait(0.05)
    assert held(stage.root) == {**FILES, changed: FILES[changed] + b"new"}
    assert reads(dataset) == {changed: 1}


async def test_without_the_others_it_fetches_everything(site, dataset, monkeypatch):
    monkeypatch.setattr("podferry.cache.peers.peers.START_SECONDS", 0.1)
    await complete(site(3).start(1))
    assert set(reads(dataset).values()) == {1}


async def test_a_holder_that_starts_late_or_again_reads_nothing(site, dataset, tmp_path):
    holders = site(2)
    await complete(holders.start(0, expected=0))
    dataset.calls.clear()
    await complete(holders.start(1))
    await holders.stop(0)
    shutil.rmtree(tmp_path / "0")
    await complete(holders.start(0))
    assert reads(dataset) == {}


async def test_a_holder_that_starts_in_the_middle_waits_for_the_first_one(site, dataset):
    blocked = asyncio.Event()
    dataset.faults.append(Fault("read", times=1000, wait=blocked))
    holders = site(2)
    first = holders.start(0, expected=0)
    await until(lambda: reads(dataset))
    second = holders.start(1)
    await until(lambda: second.status.bytes)
    blocked.set()
    await complete(first, second)
    assert set(reads(dataset).values()) == {1}


async def test_a_holder_that_ends_in_the_middle_is_replaced_by_the_other(site, dataset, monkeypatch):
    monkeypatch.setattr("podferry.cache.peers.peers.DEAD_SECONDS", 0.2)
    of_the_second = [
        name for name, data in FILES.items() if data and owner(name, ["holder-0", "holder-1"]) == "holder-1"
    ]
    blocked = asyncio.Event()
    dataset.faults += [Fault("read", name, wait=blocked) for name in of_the_second]
    holders = site(2)
    first = holders.start(0)
    holders.start(1)
    await until(lambda: set(of_the_second) <= set(reads(dataset)))
    await holders.stop(1)
    await complete(first)
    assert reads(dataset) == {name: 1 + (name in of_the_second) for name, data in FILES.items() if data}


LARGE = {"large": bytes(range(250)) * 40, "small": b"small"}
PART, RANGE = 1000, 100


@pytest.fixture
def large(content, monkeypatch):
    """One large file of ten parts, whose reads are noted with their ranges."""
    monkeypatch.setattr("podferry.contract.file_part.PART_BYTES", PART)
    content.objects.clear()
    content.objects.update({f"d/{name}": data for name, data in LARGE.items()})
    content.ranges = Counter()
    read = MemoryStore.read

    async def noted(self, name, start=0, *rest):
        content.ranges[name, start] += 1
        return await read(self, name, start, *rest)

    monkeypatch.setattr(MemoryStore, "read", noted)
    return content


def large_site(site, count, **settings):
    return site(count, settings=PrefetchSettings(range_bytes=RANGE), **settings)


async def whole(*stages):
    async with asyncio.timeout(PATIENCE):
        for stage in stages:
            while stage.complete is None:
                assert stage.failure is None, stage.failure
                await stage.wait(0.05)
    for stage in stages:
        assert held(stage.root) == LARGE
        by_name = {entry.name: entry for entry in stage.complete.document.manifest.entries}
        checksums = dict(zip(by_name, stage.complete.document.checksums, strict=True))
        assert checksums == {name: crc64(data) for name, data in LARGE.items()}


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_holders_share_the_parts_of_a_large_file(site, large, count, monkeypatch):
    claimed = Counter()
    claim = FileLog.claim
    monkeypatch.setattr(FileLog, "claim", lambda log, parts: (claimed.update([log]), claim(log, parts)))
    holders = large_site(site, count)
    await whole(*(holders.start(number) for number in range(count)))
    assert large.ranges == {("small", 0): 1, **{("large", start): 1 for start in range(0, 10_000, RANGE)}}
    assert len(claimed) == count


async def parts_by_name(content):
    async for entry in MemoryStore(content.uri).entries():
        for part in parts_of(entry):
            yield part


@pytest.fixture
async def fake_large(large):
    """Another holder, which has every part."""
    peer = FakePeer(large)
    async for part in parts_by_name(large):
        peer.has[part] = crc64(LARGE[part.entry.name][part.start : part.start + part.length])
    peer.sends = lambda name: LARGE[name]
    server = TestServer(peer.application())
    await server.start_server()
    peer.url = f"{server.make_url('')}".rstrip("/")
    yield peer
    await server.close()


async def test_parts_are_taken_from_another_holder(site, large, fake_large):
    await whole(large_site(site, 1, extra=[fake_large.url]).start(0))
    assert large.ranges == {}


async def test_a_part_with_wrong_bytes_is_read_again_from_the_source(site, large, fake_large):
    damaged = bytearray(LARGE["large"])
    damaged[2345] ^= 1
    fake_large.sends = lambda name: bytes(damaged) if name == "large" else LARGE[name]
    await whole(large_site(site, 1, extra=[fake_large.url]).start(0))
    assert large.ranges == {("large", start): 1 for start in range(2000, 3000, RANGE)}


def written(stage):
    """The ranges of the large file that the stage's journal has."""
    journals = (stage.root / PARTIAL_DIR).glob(f"*{JOURNAL_SUFFIX}")
    return [line for journal in journals for line in journal.read_bytes().splitlines()]


async def test_a_holder_that_starts_again_in_the_middle_of_a_file_keeps_its_parts(site, large):
    blocked, passed = asyncio.Event(), 55
    holders = large_site(site, 1)
    large.faults.append(Fault("read", "large", skip=passed, times=1000, wait=blocked))
    first = holders.start(0)
    await until(lambda: len(written(first)) >= passed)
    await holders.stop(0)
    large.faults.clear()
    await whole(holders.start(0))
    assert sum(times > 1 for times in large.ranges.values()) <= 10_000 // RANGE - passed
