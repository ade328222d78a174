"""The listener as a process of its own: slow clients, many connections, and its end under load."""

from __future__ import annotations

import asyncio
import base64
import json
import resource
import signal
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from podferry.webhook.admission import acceptor
from podferry.webhook.admission import listener as listener_module
from podferry.webhook.admission.listener import QUIET_SECONDS, Listener
from podferry.webhook.admission.server import Webhook
from podferry.webhook.cluster.namespaces import UnknownNamespaces
from podferry.webhook.cluster.rotation import Rotation
from podferry.webhook.pod.stamp import Signer
from podferry.webhook.policy.policy import Policy
from tests.support.memory_cluster import MemoryCluster
from tests.support.patience import PATIENCE
from tests.support.webhook_process import (
    WebhookProcess,
    connection_to,
    review,
    webhook_process,
)

LINGER = 5.0
"""Seconds after SIGTERM in which new connections are served."""
REVIEWS = 20
"""Of each client, before and after SIGTERM."""
CLIENTS = 4
IDLE_CONNECTIONS = 300
THOUSANDS = 1500
MAX_MEMORY_KIB = 100 * 1024
Pod = dict[str, Any]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[WebhookProcess]:
    with webhook_process(tmp_path, f"--linger={LINGER}") as made:
        yield made


@pytest.fixture
async def listener(
    policy: Policy, rotation: Rotation, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Listener, ssl.SSLContext, int]]:
    """A listener in this process, of little patience; what trusts it, and its port."""
    monkeypatch.setattr(acceptor, "FIRST_REQUEST_SECONDS", 3.0)
    monkeypatch.setattr(listener_module, "BODY_SECONDS", 1.0)
    await rotation.refresh()
    webhook = Webhook(lambda: policy, UnknownNamespaces(), Signer)
    made = Listener(webhook)
    bundle = base64.b64decode(cluster.bundles["mutatingwebhookconfigurations/podferry"]).decode()
    port = await made.open("127.0.0.1", 0, rotation.context)
    yield made, ssl.create_default_context(cadata=bundle), port
    await made.close()


class Client:
    """Sends reviews on kept connections; each must be answered."""

    def __init__(self, webhook: WebhookProcess, body: bytes) -> None:
        self._webhook, self._body = webhook, body
        self.answered = self.closed = 0

    async def run(self, rerouted: asyncio.Event) -> None:
        """Until new connections reach other replicas only."""
        while not rerouted.is_set():
            connection = await self._webhook.open()
            while not connection.closes:
                status, answer = await connection.post("/mutate", self._body)
                assert status == 200
                assert json.loads(answer)["response"]["patch"]
                self.answered += 1
            self.closed += 1
            await connection.close()


async def test_no_review_fails_while_a_replica_ends(
    process: WebhookProcess, annotated_pod: Callable[..., Pod]
) -> None:
    body, rerouted = review(annotated_pod()), asyncio.Event()
    clients = [Client(process, body) for _ in range(CLIENTS)]
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.run(rerouted))
        await until(lambda: all(client.answered >= REVIEWS for client in clients))
        assert not any(client.closed for client in clients)
        process.process.send_signal(signal.SIGTERM)
        # From SIGTERM on each response closes its connection.
        await until(lambda: all(client.closed >= REVIEWS for client in clients))
        rerouted.set()
    assert await asyncio.to_thread(process.process.wait, PATIENCE) == 0


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - of clients, which set no event
            await asyncio.sleep(0.01)


def head(path: str, length: int) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode()


async def test_a_review_that_is_being_sent_is_answered_at_the_end(
    tmp_path: Path, annotated_pod: Callable[..., Pod]
) -> None:
    body = review(annotated_pod())
    with webhook_process(tmp_path, "--linger=0.1") as ending:
        connection = await ending.open()
        connection.writer.write(head("/mutate", len(body)) + body[:100])
        await connection.writer.drain()
        other = await ending.open()
        assert (await other.get("/healthz"))[0] == 200  # so the bytes before have arrived
        await other.close()
        ending.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(1.5 * QUIET_SECONDS)  # without a new review
        connection.writer.write(body[100:])
        status, _ = await connection.response()
        assert (status, connection.closes) == (200, True)
        await connection.close()


async def test_slow_and_idle_clients_hold_nobody_up(
    listener: tuple[Listener, ssl.SSLContext, int], annotated_pod: Callable[..., Pod]
) -> None:
    """Hundreds of connections that send nothing, or a byte at a time; others get their decisions."""
    _, trust, port = listener
    idle = [await connection_to(port, trust) for _ in range(IDLE_CONNECTIONS)]
    slow = await connection_to(port, trust)
    slow.writer.write(head("/mutate", 1000))

    async def drip() -> None:
        while True:
            slow.writer.write(b"{")
            await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    body = review(annotated_pod())
    other = await connection_to(port, trust)
    for _ in range(20):
        assert (await other.post("/mutate", body))[0] == 200
    status, text = await slow.response()
    assert (status, slow.closes) == (408, True)
    assert text == b"the body has not arrived within 1 s"
    dripping.cancel()
    for one in idle:  # closed by the server, since no request came
        assert await one.reader.read() == b""
    for one in (*idle, slow, other):
        await one.close()


async def test_of_too_many_idle_connections_those_that_wait_longest_are_closed(
    listener: tuple[Listener, ssl.SSLContext, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, trust, port = listener
    monkeypatch.setattr(listener_module, "MAX_IDLE", 3)
    gone = [await connection_to(port, trust) for _ in range(5)]
    for one in gone:  # each gets its response before the next: closed connections do not count
        assert (await one.get("/readyz"))[0] == 200
        await one.close()
    first, *others = [await connection_to(port, trust) for _ in range(4)]
    for one in (first, *others[:2], first, others[2]):
        assert (await one.get("/readyz"))[0] == 200
    assert await others[0].reader.read() == b""
    for one in (first, *others[1:]):
        assert (await one.get("/readyz"))[0] == 200
    for one in (first, *others):
        await one.close()


@pytest.mark.parametrize(("limit", "most"), [("MAX_IDLE", 1), ("MAX_BODIES_BYTES", 10_000)])
async def test_slow_bodies_are_closed_when_there_are_too_many(
    listener: tuple[Listener, ssl.SSLContext, int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limit: str,
    most: int,
) -> None:
    _, trust, port = listener
    monkeypatch.setattr(listener_module, "BODY_SECONDS", 600.0)
    monkeypatch.setattr(listener_module, limit, most)
    slow = await connection_to(port, trust)
    slow.writer.write(head("/mutate", 9_000) + b"{")
    closed = asyncio.create_task(slow.reader.read())
    while not closed.done():
        other = await connection_to(port, trust)
        with suppress(EOFError):  # if it came before the slow one
            assert (await other.post("/mutate", b" " * 11_000))[0] == 400
        await other.close()
    assert await closed == b""
    assert not caplog.records
    await slow.close()


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Enough for the connections; many systems allow 1,024 unless asked for more."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("many_descriptors")
@pytest.mark.parametrize("sent", ["nothing", "requests"])
async def test_memory_with_thousands_of_connections(
    process: WebhookProcess, annotated_pod: Callable[..., Pod], sent: str
) -> None:
    """They stay open as long as they may, and others are served."""
    body = review(annotated_pod())
    held = [await process.open() for _ in range(THOUSANDS)]
    if sent == "requests":
        for one in held:
            with suppress(OSError, EOFError):  # closed meanwhile: of too many, the oldest
                await one.post("/mutate", body)
    other = await process.open()
    assert (await other.post("/mutate", body))[0] == 200
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    assert int(status.partition("VmHWM:")[2].split()[0]) < MAX_MEMORY_KIB
    for one in (*held, other):
        one.writer.transport.abort()
