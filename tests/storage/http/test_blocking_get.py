"""GET requests in threads: kept connections, time-outs, and requests that are given up."""

import asyncio
import time

import pytest
from aiohttp import web

from podferry.storage.http.blocking_get import BlockingGets
from podferry.storage.timeouts_and_limits import Limits
from tests.support.patience import PATIENCE

LIMITS = Limits(connect_seconds=PATIENCE, stall_seconds=PATIENCE)


@pytest.fixture
async def gets(answering):
    made, ports = [], []
    reached = asyncio.Event()

    async def answer(request):
        ports.append(request.transport.get_extra_info("peername")[1])
        if request.path == "/never":
            reached.set()
            await asyncio.sleep(PATIENCE)
        if request.path == "/close":
            return web.Response(text="bye", headers={"Connection": "close"})
        return web.Response(text=request.raw_path + str(sorted(request.headers)), headers={"X-One": "1"})

    url = await answering(answer)
    made.append(BlockingGets(url, "", LIMITS))
    made[0].reached = reached
    yield made[0], url, ports
    await made[0].close()


async def test_responses_and_kept_connections(gets):
    made, url, ports = gets
    for _ in range(3):
        status, headers, body = await made.get(f"{url}/a%20b?c=d%2F", {"Z": "y"}, PATIENCE, 1000)
        assert (status, headers["x-one"]) == (200, "1")
        assert body.startswith(b"/a%20b?c=d%2F")
        assert b"'Accept-Encoding'" not in body
    assert len(set(ports)) == 1
    await made.get(f"{url}/close", {}, PATIENCE, 1000)
    await made.get(f"{url}/a", {}, PATIENCE, 1000)
    assert len(set(ports)) == 2
    await made.close()
    await made.get(f"{url}/a", {}, PATIENCE, 1000)
    assert len(set(ports)) == 3


async def test_long_bodies_are_cut(gets):
    made, url, ports = gets
    assert (await made.get(f"{url}/abcdef", {}, PATIENCE, 3))[2] == b"/ab"
    await made.get(f"{url}/a", {}, PATIENCE, 1000)
    assert len(set(ports)) == 2  # the rest of the first one is not read


async def test_a_request_that_is_given_up_ends_at_once(gets):
    made, url, _ = gets
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        await made.get(f"{url}/never", {}, 0.2, 1000)
    made.reached.clear()
    task = asyncio.create_task(made.get(f"{url}/never", {}, PATIENCE, 1000))
    await made.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    threads = made._threads
    await made.close()
    await asyncio.to_thread(threads.shutdown, wait=True)
    assert time.monotonic() - began < PATIENCE


async def test_no_server_is_an_error():
    with pytest.raises(OSError, match="refused"):
        await BlockingGets("http://127.0.0.1:1", "", LIMITS).get("http://127.0.0.1:1/", {}, PATIENCE, 1)
