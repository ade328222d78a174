import asyncio

from podferry.cache.peers.file_log import FileLog
from podferry.contract.cache_api import FileNews
from podferry.contract.manifest import Entry, freeze

A, B = Entry("a", 3, "t"), Entry("b", 5, "u")


def made():
    return FileLog(freeze("memory://d", [A, B]))


def test_what_is_claimed_and_what_is_held():
    log = made()
    log.claim([A, B])
    log.hold({"a": 7})
    assert log.since(log.id, 0) == (FileNews(A), FileNews(B), FileNews(A, 7))
    assert log.since(log.id, 2) == (FileNews(A, 7),)
    assert log.since(log.id, len(log)) == ()
    assert (log.held("a"), log.held("b"), log.held("c")) == (A, None, None)
    assert log.checksums == {"a": 7}


def test_another_log_is_read_from_its_start():
    log = made()
    log.claim([A])
    assert log.since(made().id, 1) == (FileNews(A),)


async def test_a_wait_ends_with_news():
    log = made()
    waiting = asyncio.create_task(log.wait(log.id, 0, 600))
    await asyncio.sleep(0)
    log.claim([A])
    await waiting
    await log.wait(log.id, 0, 600)
    await log.wait("another", 1, 600)
    await log.wait(log.id, 1, 0.01)
