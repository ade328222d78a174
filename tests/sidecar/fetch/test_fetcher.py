import asyncio
import errno
import os
import resource
import subprocess
import sys
import weakref
from contextlib import closing

import pytest

from podferry.contract.errors import Changed, Corrupt, NotFound, Refused, Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.fallback_client import MIN_THREAD_BYTES
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.listing.dataset import list_dataset
from podferry.storage.local.store import LocalStore
from podferry.storage.memory.store import Content, Fault, MemoryStore
from tests.support.patience import PATIENCE

RANGE = 1000
SMALL = PrefetchSettings(in_flight=8, range_bytes=RANGE, buffer_bytes=4 * RANGE, attempts=3)
FILES = {
    "empty": b"",
    "d/one": b"1",
    "d/e/exact": os.urandom(RANGE),
    "short": os.urandom(RANGE - 1),
    "long": os.urandom(RANGE + 1),
    "d/many": os.urandom(7 * RANGE + 13),
}


pytestmark = pytest.mark.usefixtures("no_waiting")


@pytest.fixture
def store():
    made = MemoryStore(parse_uri("memory://prefetch/d"), Content())
    made.content.objects = {f"d/{name}": data for name, data in FILES.items()}
    return made


@pytest.fixture
def stage(tmp_path):
    (tmp_path / "stage").mkdir()
    made = StagingDir(tmp_path / "stage", tmp_path / "ownership")
    yield made
    made.close()


async def prepared(store, stage, settings=SMALL, progress=lambda files, count: None):
    manifest = await list_dataset(store)
    plan = plan_fetch(manifest, stage.claim(manifest), settings)
    return Fetcher(plan, FetchSource(store), stage, settings, progress)


def held(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def names(root):
    return sorted(path.name for path in root.iterdir())


async def test_every_file_arrives_complete(store, stage):
    seen = []
    prefetch = await prepared(store, stage, progress=lambda files, count: seen.append((files, count)))
    await prefetch.run()
    assert held(stage.root) == FILES
    assert names(stage.root) == ["d", "empty", "long", "short"]
    assert sum(files for files, _ in seen) == len(FILES)
    assert sum(count for _, count in seen) == sum(map(len, FILES.values()))


@pytest.mark.parametrize("size", [MIN_THREAD_BYTES - 1, MIN_THREAD_BYTES, 3 * MIN_THREAD_BYTES + 1])
async def test_large_ranges_are_written_in_threads_and_arrive_as_well(store, stage, size):
    files = {"large": os.urandom(size), "small": b"1"}
    store.content.objects = {f"d/{name}": data for name, data in files.items()}
    settings = PrefetchSettings(range_bytes=MIN_THREAD_BYTES, buffer_bytes=2 * MIN_THREAD_BYTES)
    await (await prepared(store, stage, settings)).run()
    assert held(stage.root) == files


async def test_kept_files_are_not_fetched_again(store, stage):
    await (await prepared(store, stage)).run()
    (stage.root / "long").unlink()
    store.content.calls.clear()
    await (await prepared(store, stage)).run()
    assert {name for call, name in store.content.calls if call == "read"} == {"long"}
    assert held(stage.root) == FILES


async def test_many_small_and_few_large_files(store, stage):
    files = {f"s/{i % 7}/{i:04}": str(i).encode() for i in range(2000)}
    files |= {f"l/{i}": os.urandom(50 * RANGE + i) for i in range(3)}
    store.content.objects = {f"d/{name}": data for name, data in files.items()}
    await (await prepared(store, stage)).run()
    assert held(stage.root) == files


async def test_an_object_that_changed_since_the_listing_is_named(store, stage):
    prefetch = await prepared(store, stage)
    await store.write("d/many", os.urandom(7 * RANGE + 13))
    with pytest.raises(Changed, match="d/many"):
        await prefetch.run()
    assert "d/many" not in held(stage.root)
    assert not stage.partial_dir.exists()


async def test_an_object_that_was_deleted_since_the_listing_is_named(store, stage):
    prefetch = await prepared(store, stage)
    await store.delete(["short"])
    with pytest.raises(NotFound, match="short"):
        await prefetch.run()


@pytest.mark.parametrize("name", ["short", "d/many"])
async def test_a_short_response_is_corrupt_by_name_and_publishes_nothing(store, stage, name):
    prefetch = await prepared(store, stage)
    store.faults.append(Fault("read", name, truncate=5))
    with pytest.raises(Corrupt, match=name) as caught:
        await prefetch.run()
    assert "5 bytes from" in caught.value.problems[0].measured
    assert name not in held(stage.root)


async def test_temporary_errors_are_retried(store, stage):
    prefetch = await prepared(store, stage)
    store.faults += [
        Fault("read", "short", times=SMALL.attempts - 1, error=Unavailable.of("gone")),
        Fault("read", "d/many", times=SMALL.attempts - 1, error=Unavailable.of("gone"), skip=2),
    ]
    await prefetch.run()
    assert held(stage.root) == FILES


async def test_a_store_that_stays_unavailable_is_reported_after_all_attempts(store, stage):
    prefetch = await prepared(store, stage)
    failure = Unavailable.of("the store does not answer")
    cause = failure.__cause__ = ConnectionResetError("by peer")
    store.faults.append(Fault("read", "short", times=99, error=failure))
    with pytest.raises(Unavailable, match="does not answer") as caught:
        await prefetch.run()
    assert sum(name == "short" for call, name in store.content.calls if call == "read") == SMALL.attempts
    assert caught.value.__cause__ is cause


async def test_a_permanent_error_stops_everything_at_once_and_is_not_retried(store, stage):
    never = asyncio.Event()
    prefetch = await prepared(store, stage, PrefetchSettings(in_flight=20, range_bytes=RANGE))
    store.faults += [
        Fault("read", "short", error=Corrupt.of("short is damaged")),
        Fault("read", "d/many", times=99, wait=never),
    ]
    with pytest.raises(Corrupt, match="short is damaged"):
        await asyncio.wait_for(prefetch.run(), PATIENCE)
    assert sum(name == "short" for _, name in store.content.calls) == 1
    assert not {"short", "d/many"} & held(stage.root).keys()
    assert not stage.partial_dir.exists()


async def test_a_cancellation_leaves_only_partial_files(store, stage):
    prefetch = await prepared(store, stage, PrefetchSettings(in_flight=20, range_bytes=RANGE))
    store.faults.append(Fault("read", "d/many", times=99, wait=asyncio.Event(), skip=1))
    task = asyncio.create_task(prefetch.run())
    while ("read", "short") not in store.content.calls:  # noqa: ASYNC110 - the store has no event for it
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    found = {name: data for name, data in held(stage.root).items() if not name.startswith(PARTIAL_DIR)}
    assert {"d/one", "short"} <= found.keys() < FILES.keys()
    assert found.items() <= FILES.items()


class Full(StagingDir):
    """A stage whose volume is full from the first large file on."""

    def write(self, path, data, start):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_a_full_volume_is_reported_with_its_free_space(store, tmp_path):
    (tmp_path / "full").mkdir()
    with closing(Full(tmp_path / "full", tmp_path / "ownership")) as stage:
        with pytest.raises(Refused, match="the volume was full while d/many") as caught:
            await (await prepared(store, stage)).run()
        assert "inodes are free" in caught.value.problems[0].measured
        assert not stage.partial_dir.exists()


@pytest.mark.parametrize("name", ["one", "many"])
async def test_a_file_that_cannot_be_written_is_refused_by_name(store, stage, name):
    store.content.objects = {"d/one": b"x" * 900, "d/many": b"x" * 5000, "d/tiny": b"1"}
    store.content.objects.pop("d/many" if name == "one" else "d/one")
    prefetch = await prepared(store, stage)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        with pytest.raises(Refused, match=f"{name} cannot be written to the stage"):
            await prefetch.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert name not in held(stage.root)


async def test_a_directory_in_the_way_is_refused_by_name(store, stage):
    prefetch = await prepared(store, stage)
    (stage.root / "short" / "x").mkdir(parents=True)
    with pytest.raises(Refused, match="short cannot be written"):
        await prefetch.run()


class Counted(bytearray):
    """Bytes whose release can be observed."""


class CountingStore(MemoryStore):
    """Counts the bytes that are requested or held."""

    now = most = 0

    async def read(self, name, start=0, length=None, tag="", size=None):
        self.now += length
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        data = Counted(await super().read(name, start, length, tag, size))
        weakref.finalize(data, self._gone, length)
        return memoryview(data)

    def _gone(self, length):
        self.now -= length


async def test_no_more_bytes_are_in_flight_than_the_limit(store, stage, monkeypatch):
    async def run_here(work, *arguments):
        """A thread would hold its arguments for a moment after it has returned."""
        return work(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", run_here)
    files = {f"s{i:03}": os.urandom(i) for i in range(400)}
    files |= {f"l{i}": os.urandom(9 * RANGE) for i in range(4)}
    store.content.objects = {f"d/{name}": data for name, data in files.items()}
    counting = CountingStore(store.uri, store.content)
    settings = PrefetchSettings(in_flight=64, range_bytes=RANGE, buffer_bytes=4 * RANGE)
    await (await prepared(counting, stage, settings)).run()
    assert held(stage.root) == files
    assert 3 * RANGE < counting.most <= 4 * RANGE


KILLED = """
import asyncio, os, sys
from pathlib import Path
from podferry.contract.uri import parse_uri
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.listing.dataset import list_dataset
from podferry.storage.local.store import LocalStore

async def go():
    uri = parse_uri(sys.argv[3])
    manifest = await list_dataset(LocalStore(uri))
    stage = StagingDir(Path(sys.argv[1]), Path(sys.argv[2]))
    settings = PrefetchSettings(in_flight=2, range_bytes=1000)
    plan = plan_fetch(manifest, stage.claim(manifest), settings)
    to_read = to_write = int(sys.argv[4])
    written = asyncio.Event()

    def progress(files, count):
        nonlocal to_write
        to_write -= count > 0
        if not to_write:
            written.set()

    class Stops(LocalStore):
        async def read(self, *args):
            nonlocal to_read
            to_read -= 1
            if to_read < 0:
                if to_write:
                    await written.wait()
                print("stopped", flush=True)
                await asyncio.Event().wait()
            return await super().read(*args)

    await Fetcher(plan, FetchSource(Stops(uri)), stage, settings, progress).run()

asyncio.run(go())
"""


def kill_in_the_middle(*arguments):
    command = [sys.executable, "-c", KILLED, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"stopped\n"
        finally:
            process.kill()
        process.wait(timeout=PATIENCE)


AFTER_TWELVE_PIECES = {"d/many", "long", "d/e/exact", "short"}
"""The largest files come first: 8 pieces, 2, 1 and 1."""


@pytest.mark.parametrize(("pieces", "complete"), [(0, set()), (3, set()), (12, AFTER_TWELVE_PIECES)])
async def test_a_killed_prefetch_keeps_complete_files_and_fetches_the_rest(stage, tmp_path, pieces, complete):
    source = tmp_path / "source"
    for name, data in FILES.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    root = stage.root
    kill_in_the_middle(root, tmp_path / "ownership", f"file://{source}", pieces)
    store = LocalStore(parse_uri(f"file://{source}"))
    manifest = await list_dataset(store)
    left = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert (root / ".podferry-partial").is_dir()
    kept = stage.claim(manifest)
    assert kept == {name for name in left if not name.startswith(".podferry-partial")}
    assert all((root / name).read_bytes() == FILES[name] for name in kept)
    assert kept - {"empty"} == complete
    fetched = []

    class Watched(LocalStore):
        async def read(self, name, *args):
            fetched.append(name)
            return await super().read(name, *args)

    plan = plan_fetch(manifest, kept, SMALL)
    await Fetcher(plan, FetchSource(Watched(store.uri)), stage, SMALL).run()
    assert held(root) == FILES
    assert set(fetched) == FILES.keys() - kept - {"empty"}


async def test_an_empty_plan_is_done_at_once(store, stage):
    store.content.objects = {"d/empty": b""}
    store.content.calls.clear()
    await (await prepared(store, stage)).run()
    assert held(stage.root) == {"empty": b""}
    assert [call for call, _ in store.content.calls] == ["entries"]
