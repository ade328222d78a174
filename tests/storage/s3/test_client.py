import asyncio

import pytest

from podferry.contract.errors import Unavailable
from tests.support.patience import PATIENCE
from tests.support.scripted_s3 import DATA, error
from tests.support.store_calls import KEYS, PART


@pytest.mark.parametrize(
    "fails",
    [
        lambda: error(503, ""),
        lambda: error(200, "InternalError"),
        lambda: error(400, "BadDigest"),
        lambda: None,
    ],
)
async def test_temporary_errors_are_retried(server, parts, fails):
    for kind in ("send", "complete", "abort"):
        server.answers[kind].insert(0, fails)
    upload = await parts.begin("a", PART)
    await parts.complete("a", upload, [await parts.send("a", upload, 1, DATA)])
    await parts.abort("a", upload)
    assert [len(server.of(kind)) for kind in ("send", "complete", "abort")] == [2, 2, 2]


async def test_a_stalled_server_times_out(answering, opened):
    async def silent(request):
        await asyncio.sleep(30)

    parts = opened(await answering(silent), stall_seconds=0.2, retries=0)
    for call in (parts.begin("a", PART), parts.send("a", "sha256:id", 1, b"x" * PART)):
        with pytest.raises(Unavailable, match="no response in time"):
            await call


async def test_a_server_that_reads_nothing_times_out(opened):
    """The connection accepts what fits into its buffers, and no more."""
    ended = asyncio.Event()

    async def deaf(reader, writer):
        reader._transport.pause_reading()
        await ended.wait()
        writer.close()

    async with await asyncio.start_server(deaf, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        parts = opened(f"http://127.0.0.1:{port}", stall_seconds=0.2, retries=0)
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(Unavailable, match="no response in time"):
                await parts.send("a", "crc64nvme:id", 1, memoryview(bytes(64 << 20)))
        ended.set()


async def test_a_cancelled_part_ends(server, answering, opened):
    reached = asyncio.Event()

    async def silent(request):
        reached.set()
        await asyncio.sleep(30)

    parts = opened(await answering(silent))
    task = asyncio.create_task(parts.send("a", "sha256:id", 1, b"x" * PART))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_session_token_is_sent_and_signed(server, answering, opened):
    parts = opened(await answering(server.answer), {**KEYS, "AWS_SESSION_TOKEN": "token-of-tests"})
    await parts.begin("a", PART)
    ((begin, _),) = server.of("begin")
    assert begin.headers["x-amz-security-token"] == "token-of-tests"
    assert "x-amz-security-token" in begin.headers["Authorization"]


async def test_credentials_of_the_environment_are_not_mixed_with_a_secrets(
    server, answering, opened, monkeypatch
):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token-of-somebody-else")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-somebody-else")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-somebody-else")
    monkeypatch.setenv("AWS_REGION", "mars-1")
    await opened(await answering(server.answer)).begin("a", PART)
    ((begin, _),) = server.of("begin")
    assert "Credential=key-of-tests/" in begin.headers["Authorization"]
    assert "/us-east-1/s3/" in begin.headers["Authorization"]
    assert "x-amz-security-token" not in begin.headers


async def test_anonymous_requests_are_not_signed(server, answering, opened):
    parts = opened(await answering(server.answer), {"AWS_SKIP_SIGNATURE": "true"})
    upload = await parts.begin("a", PART)
    await parts.send("a", upload, 1, DATA)
    assert all("Authorization" not in request.headers for _, request, _ in server.seen)


async def test_virtual_hosts_if_configured(server, answering, opened):
    endpoint = (await answering(server.answer)).replace("127.0.0.1", "localhost")
    parts = opened(endpoint, {**KEYS, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}, retries=0)
    assert parts.client._url == endpoint.replace("http://", "http://bucket.")
    assert opened(endpoint).client._url == f"{endpoint}/bucket"


async def test_new_keys_sign_the_next_request(server, answering, opened):
    held = dict(KEYS)
    parts = opened(await answering(server.answer), held, lambda: dict(held))
    await parts.begin("a", PART)
    held |= {"AWS_ACCESS_KEY_ID": "renewed", "AWS_SESSION_TOKEN": "token-of-tests"}
    await parts.begin("a", PART)
    held.clear()  # as while a Secret is recreated: then the first keys remain in use
    await parts.begin("a", PART)
    sent = [request.headers for request, _ in server.of("begin")]
    named = [headers["Authorization"].partition("Credential=")[2].partition("/")[0] for headers in sent]
    assert named == ["key-of-tests", "renewed", "key-of-tests"]
    assert [headers.get("x-amz-security-token") for headers in sent] == [None, "token-of-tests", None]
