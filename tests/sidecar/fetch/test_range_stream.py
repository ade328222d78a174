"""Stores that pass bytes on as they arrive: what is written, recorded and published when."""

import asyncio
import errno
import os

import pytest

from podferry.contract.errors import Changed, Refused, Unavailable
from podferry.contract.manifest import Entry, freeze
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch.fetcher import Fetcher
from podferry.sidecar.fetch.partial_file import written_ranges
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.fetch.range_stream import RangeStream, range_runs
from podferry.sidecar.fetch.sinks import RangeJob
from podferry.sidecar.fetch.source import FetchSource
from podferry.storage.checksum.checksums import ChecksumKind, checksum_of
from podferry.storage.memory.store import Content, MemoryStore

RANGE = 1000
NAME, DATA = "d/many", os.urandom(7 * RANGE + 13)
ENTRY = Entry(NAME, len(DATA), "tag")
MANIFEST = freeze("memory://prefetch", [ENTRY])
SETTINGS = PrefetchSettings(in_flight=1, range_bytes=RANGE, buffer_bytes=4 * RANGE, attempts=2)

pytestmark = pytest.mark.usefixtures("no_waiting")


class StreamingMemory(MemoryStore):
    """Passes bytes on in pieces of 300, from a thread; `cut` after as many, `failing` behind the last one."""

    stream_bytes = 3 * RANGE

    def __init__(self, cut=None, failing=None):
        super().__init__(parse_uri("memory://prefetch"), Content())
        self.cut, self.failing, self.streamed, self.reads = cut, failing, [], []

    async def read(self, name, start=0, length=None, tag="", size=None):
        self.reads.append(start)
        return memoryview(DATA[start : start + length])

    async def stream(self, name, start, length, tag, size, receive):
        self.streamed.append((start, length))
        await asyncio.to_thread(self._pass_on, start, length, receive)
        if self.failing is not None:
            raise self.failing

    def _pass_on(self, start, length, receive):
        for position in range(0, length, 300):
            if self.cut is not None and start + position >= self.cut:
                raise Unavailable.of("the connection was lost")
            receive(memoryview(DATA[start + position : start + min(position + 300, length)]), position)


def fetcher(store, stage, **source):
    plan = plan_fetch(MANIFEST, stage.claim(MANIFEST), SETTINGS)
    return Fetcher(plan, FetchSource(store, **source), stage, SETTINGS)


async def test_consecutive_ranges_are_one_stream(stage):
    store = StreamingMemory()
    await fetcher(store, stage).run()
    assert (stage.root / NAME).read_bytes() == DATA
    assert store.streamed == [(0, 3 * RANGE), (3 * RANGE, 3 * RANGE), (6 * RANGE, RANGE + 13)]
    assert store.reads == []


async def test_what_had_arrived_before_a_cut_is_not_fetched_again(stage):
    with pytest.raises(Unavailable):
        await fetcher(StreamingMemory(cut=2 * RANGE + 500), stage).run()
    assert [one.start for one in written_ranges(stage, ENTRY, RANGE)] == [0, RANGE]
    assert not (stage.root / NAME).exists()
    again = StreamingMemory()
    await fetcher(again, stage).run()
    assert again.streamed[0] == (2 * RANGE, 3 * RANGE)
    assert (stage.root / NAME).read_bytes() == DATA


async def test_a_file_that_changed_meanwhile_is_not_published(stage):
    with pytest.raises(Changed):
        await fetcher(StreamingMemory(failing=Changed.of("it has changed")), stage).run()
    assert not (stage.root / NAME).exists()
    assert not stage.partial_dir.exists()


async def test_a_full_volume_ends_it(stage, monkeypatch):
    def write(path, data, start):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(stage, "write", write)
    with pytest.raises(Refused, match=f"the volume was full while {NAME}"):
        await fetcher(StreamingMemory(), stage).run()


async def test_a_file_with_a_known_checksum_is_read_range_by_range(stage):
    store = StreamingMemory()
    await fetcher(store, stage, checksum_of=lambda entry: checksum_of(ChecksumKind.CRC32C, DATA)).run()
    assert (store.streamed, len(store.reads)) == ([], 8)
    assert (stage.root / NAME).read_bytes() == DATA


async def test_a_range_that_cannot_be_recorded_is_an_error(stage):
    stage.claim(MANIFEST)
    path = stage.create_partial("one")
    run = [RangeJob(0, ENTRY, start, RANGE, path, None, None) for start in (0, RANGE)]

    def record(job):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    stream = RangeStream(run, stage, record)
    stream.receive(memoryview(DATA[: RANGE + 1]), 0)
    await asyncio.sleep(0)  # the loop records
    with pytest.raises(OSError, match="No space"):
        stream.end()


async def test_what_arrives_after_the_end_is_not_written(stage):
    stage.claim(MANIFEST)
    path = stage.create_partial("one")
    stream = RangeStream([RangeJob(0, ENTRY, 0, RANGE, path, None, None)], stage, lambda job: None)
    stream.close()
    with pytest.raises(InterruptedError):
        stream.receive(memoryview(DATA[:RANGE]), 0)
    assert path.read_bytes() == b""


def job(number, start, kind=None):
    return RangeJob(number, ENTRY, start, RANGE, None, kind, None)


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([], []),
        ([(0, 0), (0, 1000), (0, 2000), (1, 3000)], [2, 1, 1]),
        ([(0, 0), (0, 2000)], [1, 1]),
        ([(0, 0, ChecksumKind.CRC32), (0, 1000, ChecksumKind.CRC32)], [1, 1]),
    ],
)
def test_runs_of_ranges(jobs, expected):
    runs = list(range_runs([job(*one) for one in jobs], 2 * RANGE))
    assert [len(run) for run in runs] == expected
