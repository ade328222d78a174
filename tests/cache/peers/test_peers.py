import asyncio
from collections import Counter

import pytest

from podferry.cache.peers import peers as module
from podferry.cache.peers.peers import DEAD_SECONDS, MAX_PEERS, STALL_SECONDS, Peers
from podferry.contract.cache_api import Asker, PartNews, Progress
from podferry.contract.errors import Unavailable
from podferry.contract.file_part import FilePart
from podferry.contract.manifest import Entry
from tests.support.manual_clock import Clock
from tests.support.patience import PATIENCE

A, B = FilePart(Entry("a", 3, "t"), 0, 3), FilePart(Entry("b", 5, "u"), 0, 5)


class Scripted:
    """In the place of a `NewsClient`: gives each holder's answers in turn, and then nothing more."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def __call__(self, uri, asker, token):
        return self

    async def news(self, url, *known):
        self.asked.append((url, *known))
        if not self.answers.get(url):
            await asyncio.Event().wait()
        answer = self.answers[url].pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self):
        pass


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def made(monkeypatch, clock):
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)

    def making(answers, expected=1):
        client = Scripted(answers)
        monkeypatch.setattr(module, "NewsClient", client)

        async def find():
            return list(answers)

        async def count():
            if isinstance(expected, Exception):
                raise expected
            return expected

        return Peers("memory://d", "me", find, count, now=clock), client

    return making


def names(peers, waiting_since=None):
    return [peer.view.name for peer in peers.live(waiting_since)]


async def settled(client, count):
    async with asyncio.timeout(PATIENCE):
        while len(client.asked) < count:  # noqa: ASYNC110 - nothing sets an event
            await asyncio.sleep(0)


async def test_news_are_collected(made):
    first = Progress("other", "log", 2, (PartNews(A), PartNews(B)), "d")
    peers, client = made({"u": [first, Progress("other", "log", 3, (PartNews(A, 7),), "d")]})
    async with peers.watched("d"):
        await settled(client, 3)
        view = peers.peer("other").view
        assert (view.digest, view.claimed, view.held) == ("d", {A, B}, {A: 7})
        assert client.asked == [("u", "", 0, 0.0), ("u", "log", 2), ("u", "log", 3)]
    assert names(peers) == []


async def test_a_holder_that_started_again_has_new_news(made):
    first = Progress("other", "log", 1, (PartNews(A, 7),), "d")
    peers, client = made({"u": [first, Progress("other", "log 2", 1, (PartNews(B),), "d")]})
    async with peers.watched("d"):
        await settled(client, 3)
        assert (peers.peer("other").view.claimed, peers.peer("other").view.held) == ({B}, {})


async def test_itself_is_asked_once(made):
    peers, client = made({"u": [Progress("me", "", 0)], "v": [Progress("other", "", 0, digest="d")]})
    async with peers.watched("d"):
        await settled(client, 3)
        assert names(peers) == ["other"]
        assert Counter(url for url, *_ in client.asked) == {"u": 1, "v": 2}


async def test_a_holder_that_does_not_respond_is_dead_after_a_while(made, clock):
    peers, client = made({"u": [Progress("other", "", 0, digest="d"), Unavailable.of("gone")]})
    async with peers.watched("d"):
        await settled(client, 3)
        assert names(peers) == ["other"]
        clock.now += DEAD_SECONDS + 1
        assert names(peers) == []


async def test_a_holder_that_responds_again_lives(made, clock):
    peers, client = made(
        {
            "u": [
                Progress("other", "", 0, digest="d"),
                Unavailable.of("gone"),
                Progress("other", "x", 0, digest="d"),
            ]
        }
    )
    async with peers.watched("d"):
        await settled(client, 4)
        clock.now += DEAD_SECONDS + 1
        assert names(peers) == ["other"]


async def test_a_holder_without_progress_is_given_up_until_it_makes_some(made, clock):
    answers = {"u": [Progress("other", "log", 0, digest="d")]}
    peers, client = made(answers)
    async with peers.watched("d"):
        await settled(client, 2)
        since = clock.now
        clock.now += STALL_SECONDS
        assert names(peers, since) == ["other"]
        clock.now += 1
        assert names(peers) == ["other"]
        assert names(peers, since) == names(peers) == []


async def test_bytes_are_progress(made, clock):
    peers, _ = made({})
    peers._heard("u", Progress("other", "log", 0))
    clock.now += STALL_SECONDS + 1
    assert names(peers, 0.0) == []
    peers._heard("u", Progress("other", "log", 0, bytes_done=5))
    assert names(peers, 0.0) == ["other"]


async def test_who_asks_takes_part_as_long_as_it_asks(made, clock):
    peers, _ = made({})
    version = peers.version
    peers.announce(Asker("other", "d"))
    peers.announce(Asker("me", "d"))
    assert names(peers) == ["other"]
    assert peers.version == version + 1
    assert peers.live()[0].view.digest == "d"
    clock.now += 3 * module.NEWS_SECONDS
    assert names(peers) == []


async def test_names_are_bounded(made):
    peers, _ = made({})
    for number in range(MAX_PEERS + 5):
        peers.announce(Asker(f"holder-{number}", "d"))
    assert len(peers.live()) == MAX_PEERS


async def test_a_number_of_holders_that_is_unknown_delays_nothing(made):
    peers, _ = made({}, Unavailable.of("the API server does not respond"))
    async with asyncio.timeout(PATIENCE), peers.watched("d"):
        assert names(peers) == []
