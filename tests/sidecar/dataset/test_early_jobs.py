"""Which entries are fetched before all are listed, and with which requests."""

import asyncio
from pathlib import Path

import pytest

from podferry.contract.manifest import Entry
from podferry.contract.tmpfs_cost import KERNEL_BYTES_PER_FILE
from podferry.sidecar.dataset.early_jobs import EntryJobs, EntryQueue
from podferry.sidecar.dataset.selection import Selection
from podferry.sidecar.fetch.bundles import BundleJob
from podferry.sidecar.fetch.sinks import ChunkSink
from podferry.sidecar.fetch.source import FetchSource
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.storage.checksum.checksums import Checksum, ChecksumKind
from tests.support.unsigned_requests import UnsignedRequestBuilder

PLENTY, RANGE = 1 << 30, 1 << 16
ENTRIES = [Entry(f"d/{number:02}", 100 + number) for number in range(20)]


def queue_of(*entries, max_bytes=PLENTY, page=4096):
    queue = EntryQueue(Selection(), max_bytes, RANGE, page)
    for entry in entries:
        queue.add(entry)
    return queue


@pytest.mark.parametrize("page", [4096, 65536])
async def test_no_more_is_fetched_than_fits(page):
    """As files are charged: in pages, and with the kernel's own memory."""
    queue = queue_of(*ENTRIES, max_bytes=3 * (page + KERNEL_BYTES_PER_FILE), page=page)
    assert [entry.name for _, entry in await queue.take()] == ["d/00", "d/01", "d/02"]
    assert await queue.take() == []


async def test_an_entry_is_taken_once_and_neither_if_empty_nor_if_large():
    queue = queue_of(*ENTRIES[:2], ENTRIES[0], Entry("empty", 0), Entry("large", RANGE + 1))
    assert await queue.take() == list(enumerate(ENTRIES[:2], 1))


async def test_a_taker_waits_for_entries_until_the_queue_closes():
    queue = queue_of()
    taking = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.add(ENTRIES[0])
    assert await taking == [(1, ENTRIES[0])]
    taking = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.close()
    assert await taking == []


class Bundling:
    """A store whose files arrive in bundles, but for one."""

    def position_of(self, entry):
        return None if entry.name == "d/00" else int(entry.name[2:])

    def bundle_of(self, positions, size):
        return Entry(f"bundle {positions}", size)


def jobs_of(store, queue):
    sink = ChunkSink(StageWriter(Path("/x"), 0o644), True, False, lambda job: None, lambda job, written: None)
    checksum = Checksum(ChecksumKind.CRC64NVME, bytes(8))
    source = FetchSource(store, checksum_of=lambda entry: checksum)
    return EntryJobs(source, UnsignedRequestBuilder(1), queue, sink), checksum


async def test_files_of_a_holder_arrive_in_bundles_and_are_verified():
    jobs, checksum = jobs_of(Bundling(), queue_of(*ENTRIES[:3]))
    single, bundle = await jobs.next_batch()
    assert isinstance(bundle, BundleJob)
    assert bundle.entry == Entry("bundle [1, 2]", ENTRIES[1].size + ENTRIES[2].size)
    assert [(job.entry, job.file.name) for job in (single, *bundle.files)] == [
        (entry, str(number)) for number, entry in enumerate(ENTRIES[:3], 1)
    ]
    assert {job.checksum for job in (single, *bundle.files)} == {checksum}


async def test_files_of_other_stores_have_requests_of_their_own():
    jobs, _ = jobs_of(object(), queue_of(*ENTRIES[:2]))
    assert [job.entry for job in await jobs.next_batch()] == ENTRIES[:2]
