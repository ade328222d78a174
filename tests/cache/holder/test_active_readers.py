from podferry.cache.holder import active_readers
from podferry.cache.holder.active_readers import LINGER_SECONDS, ActiveReaders
from tests.support.manual_clock import Clock


def test_readers_with_open_requests_and_with_recent_ones():
    clock = Clock()
    readers = ActiveReaders(clock)
    with readers.request("team/b"):
        with readers.request("team/a"), readers.request("team/a"):
            assert readers.names() == ("team/a", "team/b")
        clock.now += LINGER_SECONDS
        assert readers.names() == ("team/a", "team/b")
        clock.now += 0.1
        assert readers.names() == ("team/b",)
    clock.now += LINGER_SECONDS + 0.1
    assert readers.names() == ()


def test_those_that_are_gone_are_forgotten(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(active_readers, "MAX_GONE", 10)
    readers = ActiveReaders(clock)
    for number in range(100):
        with readers.request(f"team/{number}"):
            clock.now += 1
    assert len(readers._ended) <= 11
