import asyncio

import pytest

from podferry.contract.destination.sync_record import (
    SyncedArchive,
    SyncedFile,
    SyncRecord,
    encode_sync_record,
)
from podferry.contract.errors import FormatTooNew, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.sidecar.sync import record_log
from podferry.sidecar.sync.record_log import RecordLog
from podferry.storage.memory.faults import Fault
from podferry.storage.memory.store import MemoryStore

ONE, TWO = SyncedFile("a", 1, "s", "t"), SyncedFile("b", 2, "s", "t")
ARCHIVE = SyncedArchive(Entry("x.tar", 9, "s"), (Entry("m", 1, "t"),))


@pytest.fixture
def opened(site):
    def open_log(source="s3://a/b"):
        return RecordLog(MemoryStore(parse_uri(site.target_uri)), source, 2)

    return open_log


async def test_what_was_flushed_is_loaded(site, opened):
    first, second = opened(), opened()
    first.add_file(ONE)
    second.add_file(TWO)
    second.add_archive(ARCHIVE)
    await first.flush()
    await first.flush()
    await second.flush()
    assert len(site.records()) == 2
    found = await opened().load()
    assert (found.files, found.archives) == ({ONE, TWO}, (ARCHIVE,))


async def test_merging_replaces_what_was_read_and_written(site, opened):
    foreign = opened("s3://other")
    foreign.add_file(TWO)
    await foreign.flush()
    log = opened()
    log.add_file(ONE)
    await log.flush()
    assert log.is_one_record
    log.add_file(TWO)
    await log.merge([ONE, TWO], [])
    assert len(site.records()) == 2
    assert (await opened().load()).files == {ONE, TWO}
    assert (await opened("s3://other").load()).files == {TWO}


async def test_a_kill_between_write_and_removal_leaves_both(site, opened):
    log = opened()
    log.add_file(ONE)
    await log.flush()
    site.target.faults.append(Fault("delete", times=99, error=Unavailable.of("gone")))
    with pytest.raises(Unavailable):
        await log.merge([ONE, TWO], [])
    assert (await opened().load()).files == {ONE, TWO}


async def test_a_damaged_record_proves_nothing_and_is_removed(site, opened):
    good = encode_sync_record(SyncRecord("s3://a/b", (ONE,)))
    site.target.objects["copy/.podferry/sync/1.json"] = good.replace(b'"a"', b'"c"')
    site.target.objects["copy/.podferry/sync/2.json"] = good
    log = opened()
    assert (await log.load()).files == {ONE}
    await log.merge([ONE], [])
    assert len(site.records()) == 1


async def test_a_record_of_a_later_podferry_is_an_error(site, opened):
    site.target.objects["copy/.podferry/sync/1.json"] = encode_sync_record(SyncRecord("s3://a/b", format=2))
    with pytest.raises(FormatTooNew):
        await opened().load()


async def test_records_are_written_while_files_are_moved(site, opened, monkeypatch):
    now = 0.0
    monkeypatch.setattr(record_log.time, "monotonic", lambda: now)
    log = opened()
    log.add_file(ONE)
    for now, records in ((0.9, 0), (1.0, 1), (1.9, 1), (100.0, 1), (102.9, 1), (103.0, 2)):
        await log.flush_if_due()
        assert len(site.records()) == records
        if now == 100.0:  # nothing was added: an empty record is not written
            log.add_archive(ARCHIVE)


async def test_what_could_not_be_written_is_written_with_the_next_record(site, opened):
    log = opened()
    log.add_file(ONE)
    site.target.faults.append(Fault("write", times=1, error=asyncio.CancelledError()))
    with pytest.raises(asyncio.CancelledError):
        await log.flush()
    log.add_file(TWO)
    await log.flush()
    assert (await opened().load()).files == {ONE, TWO}


async def test_a_listing_or_a_removal_that_fails_once_is_tried_again(site, opened):
    log = opened()
    log.add_file(ONE)
    await log.flush()
    site.target.faults += [
        Fault(call, times=1, error=Unavailable.of("gone")) for call in ("entries", "delete")
    ]
    again = opened()
    assert (await again.load()).files == {ONE}
    await again.merge([ONE, TWO], [])
    assert len(site.records()) == 1
