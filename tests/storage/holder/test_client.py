import asyncio

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from podferry.contract.cache_api import (
    DATASET_PATH,
    FILES_PATH,
    Filling,
    HeldDataset,
    Holder,
    Refusal,
)
from podferry.contract.errors import Problem
from podferry.contract.manifest import Entry, freeze
from podferry.storage.holder import client as holder_client
from podferry.storage.holder.client import BUSY_SECONDS, HolderClient, HolderUnavailable
from tests.support.manual_clock import Clock
from tests.support.reserved_port import reserved_port

HELD = HeldDataset(freeze("s3://a/b", [Entry("x", 3, "t")]), (5,))
BUSY = 5031
"""503 with Retry-After, in a script."""


class Answers:
    """A server that gives the scripted answers in turn, the last one for ever."""

    def __init__(self, *answers):
        self.answers, self.seen = list(answers), []

    async def respond(self, request):
        self.seen.append(request)
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        headers = {"Retry-After": "1"} if status == BUSY else {}
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return web.Response(status=503 if status == BUSY else status, body=content, headers=headers)


@pytest.fixture
async def serve():
    made = []

    async def serving(*answers, **settings):
        app = web.Application()
        script = Answers(*answers)
        app.router.add_get(DATASET_PATH, script.respond)
        app.router.add_get(f"{FILES_PATH}/{{digest}}/{{name:.+}}", script.respond)
        server = TestServer(app)
        await server.start_server()
        client = HolderClient(Holder(str(server.make_url("/")), settings.pop("token", None)), **settings)
        made.append((server, client))
        return client, script.seen

    yield serving
    for server, client in made:
        await client.close()
        await server.close()


async def test_it_waits_while_the_holder_fetches(serve):
    client, seen = await serve((202, Filling(9, 3)), (202, Filling(9, 6)), (200, HELD))
    shown = []
    assert await client.dataset("s3://a/b?region=x", shown.append) == HELD
    assert shown == [Filling(9, 3), Filling(9, 6)]
    assert seen[0].query["uri"] == "s3://a/b?region=x"


async def test_a_holder_that_cannot_review_tokens_now_is_asked_again(serve):
    away = Refusal((Problem("the holder cannot verify tokens"),))
    client, seen = await serve((BUSY, away), (200, HELD))
    assert await client.dataset("s3://a/b") == HELD
    assert len(seen) == 2


async def test_a_holder_that_stays_busy_is_given_up(serve):
    clock = Clock()
    away = Refusal((Problem("the holder cannot verify tokens"),))
    client, seen = await serve((BUSY, away), now=lambda: clock.now + BUSY_SECONDS * len(seen) / 2)
    with pytest.raises(HolderUnavailable, match="cannot verify tokens"):
        await client.dataset("s3://a/b")
    assert len(seen) == 2


async def test_a_holder_without_progress_is_given_up(serve):
    clock = Clock()
    client, _ = await serve((202, Filling(9, 3)), now=clock)
    with pytest.raises(HolderUnavailable, match="no progress for 60 s: 3 of 9 bytes"):
        await client.dataset("s3://a/b", lambda filling: setattr(clock, "now", clock.now + 40))


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (404, Refusal((Problem("the holder does not have this dataset", "s3://a/b"),)), "does not have this"),
        (503, Refusal((Problem("the bucket is missing"),)), "the bucket is missing"),
        (401, b"<html>", "HTTP 401"),
        (200, b"{", "not a valid held dataset"),
        (200, b'{"format": 99}', "later podferry"),
        (200, msgspec.structs.replace(HELD, checksums=()), "0 checksums of 1 files"),
    ],
)
async def test_other_answers_name_the_reason(serve, status, body, reason):
    client, _ = await serve((status, body))
    with pytest.raises(HolderUnavailable, match=reason):
        await client.dataset("s3://a/b")


async def test_nobody_listens(monkeypatch):
    monkeypatch.setattr(holder_client, "START_SECONDS", 0.2)
    with reserved_port() as port:
        client = HolderClient(Holder(f"http://127.0.0.1:{port}"))
        with pytest.raises(HolderUnavailable, match="it does not respond"):
            await client.dataset("s3://a/b")
        assert await client.read("0" * 64, "x", 0, 3) is None
        await client.close()


async def test_a_holder_that_ends_after_a_long_wait_may_start_again(monkeypatch):
    monkeypatch.setattr(holder_client, "START_SECONDS", 0.2)
    ended = []

    async def respond(request):
        if not ended:
            await asyncio.sleep(2 * holder_client.START_SECONDS)
            ended.append(request)
            request.transport.abort()
        return web.Response(body=msgspec.json.encode(HELD))

    app = web.Application()
    app.router.add_get(DATASET_PATH, respond)
    async with TestServer(app) as server:
        client = HolderClient(Holder(str(server.make_url("/")).rstrip("/")))
        assert await client.dataset("s3://a/b") == HELD
        await client.close()
    assert ended


async def test_one_request_suffices(serve):
    client, seen = await serve((200, HELD))
    await client.dataset("s3://a/b")
    assert len(seen) == 1


async def test_a_range(serve):
    client, seen = await serve((206, b"abc"))
    assert await client.read("0" * 64, "a b/#", 4, 3) == b"abc"
    assert seen[0].match_info["name"] == "a b/#"
    assert seen[0].headers["Range"] == "bytes=4-6"


@pytest.mark.parametrize(
    "answer", [(206, b"ab"), (206, b"abcd"), (200, b"abcdefg"), (404, b""), (202, b"abc")]
)
async def test_any_other_answer_is_no_range(serve, answer):
    client, _ = await serve(answer)
    assert await client.read("0" * 64, "x", 4, 3) is None


async def test_the_token_is_read_again(serve, tmp_path, monkeypatch):
    monkeypatch.setattr("podferry.storage.credentials.refresh.REFRESH_SECONDS", 0.0)
    token = tmp_path / "token"
    token.write_text("one\n")
    client, seen = await serve((200, HELD), token=token)
    await client.dataset("s3://a/b")
    token.write_text("two")
    await client.dataset("s3://a/b")
    assert [request.headers["Authorization"] for request in seen] == ["Bearer one", "Bearer two"]


async def test_a_missing_token_is_named(serve, tmp_path):
    client, _ = await serve((200, HELD), token=tmp_path / "none")
    with pytest.raises(HolderUnavailable, match="the token for the cache cannot be read"):
        await client.dataset("s3://a/b")


def test_a_wait_is_shorter_than_a_lost_connection():
    assert holder_client.LIMITS.stall_seconds > holder_client.WAIT_SECONDS


async def test_a_holder_may_start_a_moment_later():
    app = web.Application()
    app.router.add_get(DATASET_PATH, Answers((200, HELD)).respond)
    with reserved_port() as port:
        client = HolderClient(Holder(f"http://127.0.0.1:{port}"))
        asking = asyncio.create_task(client.dataset("s3://a/b"))
        await asyncio.sleep(2 * holder_client.START_PAUSE_SECONDS)
        async with TestServer(app, port=port):
            assert await asking == HELD
        await client.close()


async def test_a_holder_that_hangs_is_not_asked_for_each_file(serve, monkeypatch):
    clock, said = Clock(), []
    client, seen = await serve((200, b"abc"), now=clock)
    monkeypatch.setattr(holder_client, "warn", lambda event, **more: said.append(event))

    async def hangs(*_):
        seen.append("hangs")
        raise TimeoutError

    with monkeypatch.context() as patched:
        patched.setattr(client._gets, "read", hangs)
        for _ in range(3):
            assert await client.read("d", "x", 0, 3) is None
    assert seen == ["hangs"]
    assert said == ["the cache does not respond: files are taken from the source"]
    assert await client.read("d", "x", 0, 3) is None
    clock.now += holder_client.AWAY_SECONDS
    assert bytes(await client.read("d", "x", 0, 3)) == b"abc"


async def test_a_holder_that_refuses_files_is_named_once(serve, monkeypatch):
    said = []
    client, _ = await serve((401, b""))
    monkeypatch.setattr(holder_client, "warn", lambda event, **more: said.append(more["reason"]))
    for _ in range(3):
        assert await client.read("d", "x", 0, 3) is None
    assert said == ["HTTP 401"]


async def test_a_file_that_a_holder_does_not_have_is_no_refusal(serve, monkeypatch):
    said = []
    client, _ = await serve((404, b""))
    monkeypatch.setattr(holder_client, "warn", lambda event, **more: said.append(event))
    assert await client.read("d", "x", 0, 3) is None
    assert said == []
