import asyncio

from podferry.cache.peers.file_log import FileLog
from podferry.contract.cache_api import PartNews
from podferry.contract.file_part import FilePart, parts_of
from podferry.contract.manifest import Entry, freeze
from podferry.storage.checksum.checksums import crc64

A, B = (FilePart(entry, 0, entry.size) for entry in (Entry("a", 3, "t"), Entry("b", 5, "u")))


def made():
    return FileLog(freeze("memory://d", [A.entry, B.entry]))


def test_what_is_claimed_and_what_is_held():
    log = made()
    log.claim([A, B])
    log.hold({A: 7})
    assert log.since(log.id, 0) == (PartNews(A), PartNews(B), PartNews(A, 7))
    assert log.since(log.id, 2) == (PartNews(A, 7),)
    assert log.since(log.id, len(log)) == ()
    assert (log.held("a"), log.held("b"), log.held("c")) == (A.entry, None, None)
    assert log.checksums() == {"a": 7}


def test_another_log_is_read_from_its_start():
    log = made()
    log.claim([A])
    assert log.since(made().id, 1) == (PartNews(A),)


async def test_a_wait_ends_with_news():
    log = made()
    waiting = asyncio.create_task(log.wait(log.id, 0, 600))
    await asyncio.sleep(0)
    log.claim([A])
    await waiting
    await log.wait(log.id, 0, 600)
    await log.wait("another", 1, 600)
    await log.wait(log.id, 1, 0.01)


def test_a_large_file_in_parts(monkeypatch):
    monkeypatch.setattr("podferry.contract.file_part.PART_BYTES", 4)
    data = b"0123456789"
    entry = Entry("a", len(data), "t")
    log = FileLog(freeze("memory://d", [entry]))
    first, second, third = parts_of(entry)
    log.hold({part: crc64(data[part.start : part.start + part.length]) for part in (first, third)})
    assert (log.held("a"), log.checksums()) == (None, {})
    assert log.held("a", 0, 4) == log.held("a", 1, 2) == log.held("a", 8, 2) == entry
    assert log.held("a", 3, 2) is log.held("a", 4, 4) is log.held("a", 7, 3) is None
    log.hold({second: crc64(data[4:8])})
    assert (log.held("a"), log.checksums()) == (entry, {"a": crc64(data)})


def test_an_empty_file_is_held_once_it_is_there():
    empty = Entry("a", 0, "t")
    log = FileLog(freeze("memory://d", [empty]))
    assert log.held("a", 0, 0) is log.held("a") is None
    log.hold({FilePart(empty, 0, 0): 0})
    assert log.held("a", 0, 0) == log.held("a") == empty
    assert (log.knows("a"), log.knows("b")) == (empty, None)
