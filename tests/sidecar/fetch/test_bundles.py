from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.cache.holder import server, small_reads
from podferry.contract.bundle import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES, bundle_positions
from podferry.contract.errors import Refused
from podferry.contract.manifest import Entry, freeze
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch import pool_runner
from podferry.sidecar.fetch.bundles import BundledFiles, BundleJob, single_jobs
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.factory import open_store
from podferry.storage.holder.client import HolderClient
from podferry.storage.holder.store import HolderStore
from podferry.storage.http.response_head import UnexpectedResponse
from podferry.storage.store import StoreConfig
from tests.support.holder_site import running_holder

RANDOM = random.Random(7)  # noqa: S311 - content of files
FILES = {
    "empty": b"",
    "one": b"1",
    **{f"d{number % 3}/{number:03}": RANDOM.randbytes(RANDOM.randint(1, 9000)) for number in range(300)},
    "largest of a bundle": RANDOM.randbytes(MAX_FILE_BYTES),
    "single": RANDOM.randbytes(MAX_FILE_BYTES + 1),
    "ranges": RANDOM.randbytes(3_000_000),
}
SMALL = {name for name, data in FILES.items() if 0 < len(data) <= MAX_FILE_BYTES}


class Site:
    """A source, a holder that has all of it, and what a reader asks the holder for.

    Attributes:
        bundles: The positions of each bundle that the holder has sent, or refused.
        origin: Names of files that were read from the source.
        store: What the reader fetches from.
        counters: Of the reader.
    """

    def __init__(self, store, held, bundles, origin):
        self.store, self.held, self.bundles, self.origin = store, held, bundles, origin
        self.counters = TransferCounters()

    async def fetch(self, stage, processes=1):
        manifest = self.held.manifest
        settings = PrefetchSettings(in_flight=4, range_bytes=1 << 20, processes=processes)
        plan = plan_fetch(manifest, stage.claim(manifest), settings)
        source = FetchSource(self.store, checksum_of=self.store.checksum_of, origin=self.store.origin)
        await Fetcher(plan, source, stage, settings, counters=self.counters).run()

    def bundled(self):
        entries = self.held.manifest.entries
        return sorted(entries[one].name for name in self.bundles for one in bundle_positions(name))


@pytest.fixture
async def site(tmp_path, monkeypatch):
    for name, data in FILES.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    uri = parse_uri(f"file://{tmp_path}/source")
    bundles, origin, read = [], [], server.open_bundle

    def recorded(version, name):
        bundles.append(name)
        return read(version, name)

    # Also what aiohttp answers: on a connection that has fetched a range, all that follows.
    for module in (server, small_reads):
        monkeypatch.setattr(module, "open_bundle", recorded)
    async with running_holder(uri, tmp_path / "held") as (_, holder):
        client = HolderClient(holder)
        held = await client.dataset(str(uri))
        source = open_store(uri, StoreConfig())
        taken = source.read

        async def noted(name, *given):
            origin.append(name)
            return await taken(name, *given)

        monkeypatch.setattr(source, "read", noted)
        store = HolderStore(source, client, held)
        yield Site(store, held, bundles, origin)
        await store.close()


def staged(stage):
    paths = (path for path in stage.root.rglob("*") if path.is_file())
    found = {path.relative_to(stage.root).as_posix(): path for path in paths}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(PARTIAL_DIR)}


@pytest.mark.parametrize("processes", [1, 2])
async def test_small_files_arrive_in_bundles(site, stage, processes, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    await site.fetch(stage, processes)
    assert staged(stage) == FILES
    assert site.bundled() == sorted(SMALL)
    assert len(site.bundles) <= 2 + sum(len(FILES[name]) for name in SMALL) // (MAX_BYTES - MAX_FILE_BYTES)
    assert (site.origin, site.counters.files) == ([], len(FILES))


@pytest.mark.parametrize("processes", [1, 2])
async def test_only_a_damaged_file_is_fetched_again(site, stage, tmp_path, processes, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    damaged = tmp_path / "held/d1/151"
    damaged.write_bytes(bytes(len(FILES["d1/151"])))
    await site.fetch(stage, processes)
    assert staged(stage) == FILES
    # Behind it in its bundle, files are read one by one; from the source only that one.
    assert site.origin == ["d1/151"]
    assert site.counters.files == len(FILES)


async def test_files_of_a_bundle_that_the_holder_has_lost_are_read_one_by_one(site, stage, tmp_path):
    (tmp_path / "held/d2/002").unlink()
    await site.fetch(stage)
    assert staged(stage) == FILES
    assert site.origin == ["d2/002"]


async def test_what_the_stage_has_is_in_no_bundle(site, stage, tmp_path):
    kept = sorted(SMALL)[::2]
    await site.fetch(stage)
    for name in SMALL - set(kept):
        (stage.root / name).unlink()
    site.bundles.clear()
    await site.fetch(stage)
    assert staged(stage) == FILES
    assert site.bundled() == sorted(SMALL - set(kept))


async def test_a_holder_of_an_earlier_release_sends_no_bundles(site, stage, monkeypatch):
    monkeypatch.setattr(site.store, "_bundles", False)
    await site.fetch(stage)
    assert (staged(stage), site.bundles, site.origin) == (FILES, [], [])


class Written:
    """Takes the bytes of a file, or refuses them."""

    def __init__(self, number, length, taken, refused):
        self.number, self.length, self._taken, self._refused = number, length, taken, refused

    def receive_body(self, data, offset):
        if self._refused:
            raise UnexpectedResponse("damaged")
        self._taken.append((self.number, bytes(data), offset))


def test_what_is_written_before_a_damaged_file_stays_written():
    taken = []
    files = [Written(number, number, taken, number == 3) for number in (1, 2, 3, 4)]
    job = BundleJob(Entry("/0-3", 10), files)
    with pytest.raises(UnexpectedResponse):
        job.receive_body(memoryview(b"abbcccdddd"), 0)
    assert taken == [(1, b"a", 0), (2, b"bb", 0)]
    assert [one.number for one in single_jobs(job)] == [3, 4]


def test_a_bundle_whose_head_fills_the_buffer_is_refused():
    job = BundleJob(Entry("/0-1", 10), [])
    with pytest.raises(UnexpectedResponse):
        job.receive_body(memoryview(b"abc"), 0)


class Positions:
    """A store that has the entries with a tag, at the position that the tag is."""

    def position_of(self, entry):
        return int(entry.tag) if entry.tag else None

    def bundle_of(self, positions, size):
        return Entry(",".join(map(str, positions)), size)


@given(
    st.lists(
        st.tuples(
            st.integers(1, MAX_FILE_BYTES + 2) | st.integers(1, 9),
            st.integers(0, 99_999),
        ),
        unique_by=lambda pair: pair[1],
        max_size=600,
    )
)
def test_each_file_is_in_one_bundle_within_its_limits(files):
    entries = [Entry(f"n{number}", size, str(at)) for number, (size, at) in enumerate(files)]
    collected = BundledFiles(Positions())
    taken = [number for number, entry in enumerate(entries) if collected.add(number, entry)]
    assert taken == [number for number, entry in enumerate(entries) if entry.size <= MAX_FILE_BYTES]
    jobs = list(collected.jobs(lambda number: Written(number, entries[number].size, [], False)))
    assert sorted(one.number for job in jobs for one in job.files) == taken
    for job in jobs:
        assert job.length == sum(one.length for one in job.files) <= MAX_BYTES
        assert len(job.files) <= MAX_FILES
        assert job.entry.name == ",".join(entries[one.number].tag for one in job.files)
    order = [int(entries[one.number].tag) for job in jobs for one in job.files]
    assert order == sorted(order)


def test_a_file_that_the_store_does_not_have_is_in_no_bundle():
    assert not BundledFiles(Positions()).add(0, freeze("x://y", [Entry("a", 1)]).entries[0])


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_file_of_a_bundle_that_cannot_be_written_is_refused_by_name(
    site, stage, processes, monkeypatch
):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    claim = stage.claim

    def blocked(manifest):
        found = claim(manifest)
        (stage.root / "d1/151/x").mkdir(parents=True)
        return found

    monkeypatch.setattr(stage, "claim", blocked)
    with pytest.raises(Refused, match="d1/151 cannot be written to the stage"):
        await site.fetch(stage, processes)
