import asyncio
import json
from base64 import urlsafe_b64encode

import pytest

from podferry.cache.holder.readers import (
    CACHE_SECONDS,
    MAX_CACHED,
    MAX_REVIEWS,
    NODE_NAME,
    POD_NAME,
    Reader,
    Readers,
    TooManyTokens,
    Unauthenticated,
    reader_of,
    refusal_status,
    token_subject,
)
from podferry.cache.holder.token_budget import MAX_UNKNOWN, WINDOW_SECONDS
from podferry.contract.cache_api import AUDIENCE
from podferry.contract.errors import AccessDenied, PermanentError, Unavailable
from tests.support.manual_clock import Clock

HOLDERS = "system:serviceaccount:team-a:podferry-cache-digits"
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
        if token == "holder":
            return status(user={"username": HOLDERS})
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
    return Readers(reviews, ["team-*"], clock, HOLDERS)


async def test_a_pod_of_an_allowed_namespace(readers):
    assert await readers.check("Bearer good") == Reader("team-a", "p1", "n1", "default")


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
    assert reader_of(status(user=user)) == Reader("a", account="b")


async def test_other_holders_are_known_by_their_account(readers):
    assert readers.is_holder(await readers.check("Bearer holder"))
    assert not readers.is_holder(await readers.check("Bearer good"))


async def test_without_an_account_nobody_is_a_holder(reviews, clock):
    readers = Readers(reviews, ["team-*"], clock)
    assert not readers.is_holder(await readers.check("Bearer holder"))


async def test_guesses_are_not_all_reviewed(readers, reviews, clock):
    for number in range(MAX_UNKNOWN):
        with pytest.raises(Unauthenticated):
            await readers.check(f"Bearer bad{number}", "10.0.0.1")
    reviews.asked.clear()
    with pytest.raises(TooManyTokens, match=r"not valid \(10.0.0.1\)") as caught:
        await readers.check("Bearer good", "10.0.0.1")
    assert refusal_status(caught.value) == 429
    assert reviews.asked == []
    assert await readers.check("Bearer good", "10.0.0.2")
    assert await readers.check("Bearer good", "10.0.0.1"), "a token that is known needs no review"
    clock.now += WINDOW_SECONDS
    assert await readers.check("Bearer good2", "10.0.0.1")


async def test_reviews_at_a_time_are_bounded(readers, reviews):
    running, most = 0, 0
    ask = readers._review

    async def counted(token, audience):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return await ask(token, audience)

    readers._review = counted
    await asyncio.gather(*(readers.check(f"Bearer good{number}") for number in range(50)))
    assert most == MAX_REVIEWS


async def test_a_holder_without_rights_blames_no_reader():
    async def refused(token, audience):
        raise AccessDenied.of("the API server refuses", "User system:serviceaccount:podferry:x")

    with pytest.raises(PermanentError, match="the holder cannot verify tokens") as caught:
        await Readers(refused, ["team-*"]).check("Bearer good")
    assert refusal_status(caught.value) == 503
    assert "serviceaccount" not in str(caught.value)


async def test_an_outage_does_not_count_as_guessing(readers, reviews):
    reviews.away = True
    for number in range(MAX_UNKNOWN + 1):
        with pytest.raises(Unavailable):
            await readers.check(f"Bearer good{number}")


@pytest.mark.parametrize(
    ("token", "found"),
    [
        (f"x.{urlsafe_b64encode(json.dumps({'sub': HOLDERS}).encode()).decode().rstrip('=')}.y", HOLDERS),
        ("opaque", None),
        ("x.!!.y", None),
        ("x.bnVsbA.y", None),
        ("x.e30.y", None),
    ],
)
def test_whose_token_it_is(token, found):
    assert token_subject(token) == found
