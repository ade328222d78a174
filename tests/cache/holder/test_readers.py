import asyncio

import pytest

from podferry.cache.holder.readers import (
    CACHE_SECONDS,
    MAX_CACHED,
    NODE_NAME,
    POD_NAME,
    Reader,
    Readers,
    Unauthenticated,
    reader_of,
    refusal_status,
)
from podferry.contract.cache_api import AUDIENCE
from podferry.contract.errors import AccessDenied, Unavailable
from tests.support.manual_clock import Clock

EXTRA = {POD_NAME: ["p1"], NODE_NAME: ["n1"]}


def status(namespace="team-a", **changes):
    user = {"username": f"system:serviceaccount:{namespace}:default", "extra": EXTRA}
    return {"authenticated": True, "audiences": [AUDIENCE], "user": user, **changes}


class Reviews:
    """An API server that knows the tokens `good…` of team-a, and `other` of another namespace."""

    def __init__(self):
        self.asked, self.away = [], False

    async def __call__(self, token, audience):
        assert audience == AUDIENCE
        self.asked.append(token)
        await asyncio.sleep(0)
        if self.away:
            raise Unavailable.of("the API server does not respond")
        if token.startswith("good"):
            return status()
        return status("other") if token == "other" else {"authenticated": False}


@pytest.fixture
def reviews():
    return Reviews()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def readers(reviews, clock):
    return Readers(reviews, ["team-*"], clock)


async def test_a_pod_of_an_allowed_namespace(readers):
    assert await readers.check("Bearer good") == Reader("team-a", "p1", "n1")


async def test_a_token_that_was_reviewed_lately_is_known_without_a_question(readers, reviews, clock):
    assert readers.known("Bearer good") is None
    reader = await readers.check("Bearer good")
    assert readers.known("Bearer good") == reader
    assert readers.known("Basic good") is None
    for refused in ("Bearer other", "Bearer bad"):
        with pytest.raises(AccessDenied):
            await readers.check(refused)
        assert readers.known(refused) is None
    clock.now += CACHE_SECONDS
    assert readers.known("Bearer good") is None
    assert len(reviews.asked) == 3


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic good",
        "good",
        "Bearer bad",
        "Bearer \udcff",
        "Bearer good\0",
        "Bearer gööd",
    ],
)
async def test_no_valid_token(readers, header):
    with pytest.raises(Unauthenticated, match="needs a valid token") as caught:
        await readers.check(header)
    assert refusal_status(caught.value) == 401
    assert "bad" not in str(caught.value)


async def test_another_namespace(readers):
    with pytest.raises(AccessDenied, match=r"may not read from this cache \(other\)") as caught:
        await readers.check("Bearer other")
    assert refusal_status(caught.value) == 403


async def test_an_answer_counts_for_a_while(readers, reviews, clock):
    for _ in range(3):
        await readers.check("Bearer good")
        clock.now += CACHE_SECONDS / 3 - 1
    assert reviews.asked == ["good"]
    clock.now += 5
    await readers.check("Bearer good")
    assert reviews.asked == ["good", "good"]


async def test_requests_at_once_ask_once(readers, reviews):
    await asyncio.gather(*(readers.check("Bearer good") for _ in range(50)))
    assert reviews.asked == ["good"]


async def test_a_reader_that_leaves_does_not_cancel_the_question(readers, reviews):
    first = asyncio.create_task(readers.check("Bearer good"))
    second = asyncio.create_task(readers.check("Bearer good"))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).namespace == "team-a"
    assert reviews.asked == ["good"]


async def test_an_outage_is_not_remembered(readers, reviews):
    reviews.away = True
    with pytest.raises(Unavailable) as caught:
        await readers.check("Bearer good")
    assert refusal_status(caught.value) == 503
    reviews.away = False
    assert (await readers.check("Bearer good")).pod == "p1"


async def test_answers_are_bounded(readers, reviews, clock):
    for number in range(MAX_CACHED + 5):
        await readers.check(f"Bearer good{number}")
    reviews.asked.clear()
    await readers.check(f"Bearer good{MAX_CACHED}")
    assert reviews.asked == []
    await readers.check("Bearer good0")
    assert reviews.asked == ["good0"]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        status(authenticated=False),
        status(audiences=["https://kubernetes.default.svc"]),
        status(audiences=None),
        status(user={"username": "admin"}),
        status(user={"username": "system:node:n1:x"}),
        status(user=None),
    ],
)
def test_what_is_no_reader(wrong):
    assert reader_of(wrong) is None


def test_an_older_api_server_names_no_pod():
    user = {"username": "system:serviceaccount:a:b"}
    assert reader_of(status(user=user)) == Reader("a")
