"""The agent's HTTP API over a real socket, with the real client."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator
from urllib.request import urlopen

import msgspec
import pytest

from podferry.contract.errors import InvalidSpec, Problem, Refused, Unavailable
from podferry.contract.http_api import METRICS_PATH, Durability, Gate, Marked
from podferry.contract.status import AgentPhase, CheckpointStatus, DatasetStatus, DurableCheckpoint, Status
from podferry.sidecar.control import http_client, prestop_command
from podferry.sidecar.control.agent_api import AgentApi, FlushRequest
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.control.http_server import serve
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.transfer_counters import TransferCounters


@pytest.fixture
async def served() -> AsyncIterator[tuple[AgentApi, AgentState, AgentClient]]:
    state = AgentState(Status())
    api = AgentApi(state, Durations())
    listener = socket.create_server(("127.0.0.1", 0))
    runner = await serve(api, listener)
    yield api, state, AgentClient(f"http://127.0.0.1:{listener.getsockname()[1]}")
    await runner.cleanup()


async def test_status_is_the_complete_document(served: tuple[AgentApi, AgentState, AgentClient]) -> None:
    _, state, client = served
    state.status.starts = 3
    assert await asyncio.to_thread(client.status) == state.status


async def test_gate_responds_when_it_opens(served: tuple[AgentApi, AgentState, AgentClient]) -> None:
    _, state, client = served
    asked = asyncio.create_task(asyncio.to_thread(client.wait_for_gate))
    gate = Gate(open=True, environment={"PODFERRY_DATASET": "/d"}, summary="all there")
    asyncio.get_running_loop().call_soon(state.open_gate, gate)
    async with asyncio.timeout(5):
        assert await asked == gate


async def test_a_closed_gate_reports_progress(
    served: tuple[AgentApi, AgentState, AgentClient],
) -> None:
    _, state, client = served
    state.transition(AgentPhase.PREFETCHING)
    gate = await asyncio.to_thread(client.gate, 0)
    assert not gate.open
    assert not gate.problems
    assert "prefetching" in gate.summary


@pytest.mark.parametrize(("error", "retryable"), [(Refused, False), (Unavailable, True)])
async def test_a_failure_says_whether_a_new_pod_may_succeed(
    served: tuple[AgentApi, AgentState, AgentClient], error: type[Refused | Unavailable], retryable: bool
) -> None:
    _, state, client = served
    state.fail(error(Problem("a"), Problem("b")))
    gate = await asyncio.to_thread(client.wait_for_gate)
    assert (gate.open, gate.retryable) == (False, retryable)
    assert [problem.what for problem in gate.problems] == ["a", "b"]


async def test_without_checkpoints_everything_is_durable(
    served: tuple[AgentApi, AgentState, AgentClient],
) -> None:
    assert await asyncio.to_thread(served[2].wait_durable, 5) == Durability(durable=True)


async def test_wait_durable_polls_until_the_deadline(
    served: tuple[AgentApi, AgentState, AgentClient],
) -> None:
    api, _, client = served
    calls: list[tuple[float, FlushRequest]] = []

    async def flush(seconds: float, request: FlushRequest) -> Durability:
        calls.append((seconds, request))
        return Durability(durable=len(calls) == 3, pending=("x",))

    api.flush = flush
    answer = await asyncio.to_thread(client.wait_durable, 60, final=True, ending=True, exit_code=3)
    assert answer.durable
    assert len(calls) == 3
    assert all(0 < seconds <= 25 for seconds, _ in calls)
    assert {request for _, request in calls} == {FlushRequest(final=True, ending=True, exit_code=3)}


async def test_the_hook_reports_that_the_pod_ends_and_does_not_wait(
    served: tuple[AgentApi, AgentState, AgentClient],
) -> None:
    api, _, client = served
    calls: list[tuple[float, FlushRequest]] = []

    async def flush(seconds: float, request: FlushRequest) -> Durability:
        calls.append((seconds, request))
        return Durability(durable=False, pending=("x",))

    api.flush = flush
    assert await asyncio.to_thread(prestop_command.main, ["--agent", client.url]) == 0
    assert calls == [(0, FlushRequest(ending=True))]


async def test_a_mark_reaches_its_callback(served: tuple[AgentApi, AgentState, AgentClient]) -> None:
    api, _, client = served
    answer = await asyncio.to_thread(client.mark_done, "step 1/2")
    assert answer.checkpoint is None
    assert "gate has not opened" in answer.problems[0].measured

    async def mark(checkpoint: str) -> Marked:
        return Marked(checkpoint=checkpoint.upper())

    api.mark = mark
    assert (await asyncio.to_thread(client.mark_done, "step 1/2")).checkpoint == "STEP 1/2"


async def test_metrics_match_the_status(served: tuple[AgentApi, AgentState, AgentClient]) -> None:
    _, state, client = served
    done = DurableCheckpoint("step-7", 3, 7, 10, completed_at=1.0, durable_at=2.0)
    state.status.checkpoints = CheckpointStatus(
        uri="s3://b/c", path="/c", lineage="l", durable=[done], pending=["step-8"], pending_bytes=99
    )
    state.transition(AgentPhase.OPEN)
    lines = await metrics_of(client)
    for line in (
        'podferry_stage{stage="open"} 1.0',
        'podferry_stage{stage="draining"} 0.0',
        "podferry_checkpoints_durable_total 1.0",
        "podferry_checkpoint_backlog_bytes 99.0",
        "podferry_checkpoint_durable_step 7.0",
        "podferry_checkpoint_durable_seconds_count 0.0",
    ):
        assert line in lines


async def metrics_of(client: AgentClient) -> list[str]:
    with await asyncio.to_thread(urlopen, f"{client.url}{METRICS_PATH}") as answer:
        lines: list[str] = answer.read().decode().splitlines()
    return lines


async def test_each_dataset_has_samples_of_its_own(served: tuple[AgentApi, AgentState, AgentClient]) -> None:
    _, state, client = served
    counters = TransferCounters(bytes=500, retries=2, handed_over=3, connections=4)
    for seconds in (0.004, 0.005, 3.0, 60.0):
        counters.first_byte(seconds)
    first = DatasetStatus("s3://b/d", "/d", files=9, bytes_done=400, rate=12.5, transfer=counters)
    state.status.datasets = [first, DatasetStatus("s3://b/v", "/v", name="val", volume_free=7)]
    lines = await metrics_of(client)
    family = "podferry_dataset_first_byte_seconds"
    for line in (
        'podferry_dataset_files{dataset=""} 9.0',
        'podferry_dataset_files{dataset="val"} 0.0',
        'podferry_dataset_done_bytes{dataset=""} 400.0',
        'podferry_dataset_bytes_per_second{dataset=""} 12.5',
        'podferry_dataset_received_bytes_total{dataset=""} 500.0',
        'podferry_dataset_retries_total{dataset=""} 2.0',
        'podferry_dataset_handed_over_total{dataset=""} 3.0',
        'podferry_dataset_connections{dataset=""} 4.0',
        'podferry_dataset_volume_free_bytes{dataset="val"} 7.0',
        f'{family}_bucket{{dataset="",le="0.0025"}} 0.0',
        f'{family}_bucket{{dataset="",le="0.005"}} 2.0',
        f'{family}_bucket{{dataset="",le="10.0"}} 3.0',
        f'{family}_bucket{{dataset="",le="+Inf"}} 4.0',
        f'{family}_count{{dataset=""}} 4.0',
        f'{family}_sum{{dataset=""}} 63.009',
        f'{family}_count{{dataset="val"}} 0.0',
    ):
        assert line in lines
    assert lines.count("# TYPE podferry_dataset_files gauge") == 1, "one family, however many datasets"


async def test_the_status_is_refreshed_before_each_response(
    served: tuple[AgentApi, AgentState, AgentClient],
) -> None:
    api, state, client = served
    dataset = DatasetStatus("s3://b/d", "/d", files=9)
    state.status.datasets = [dataset]

    def more() -> None:
        dataset.files_done += 1

    api.refresh = more
    assert (await asyncio.to_thread(client.status)).datasets[0].files_done == 1
    assert 'podferry_dataset_done_files{dataset=""} 2.0' in await metrics_of(client)
    assert "3 of 9 files" in (await asyncio.to_thread(client.gate, 0)).summary


async def test_wait_durable_gives_up_if_hopeless(served: tuple[AgentApi, AgentState, AgentClient]) -> None:
    api, _, client = served

    async def flush(seconds: float, request: FlushRequest) -> Durability:
        return Durability(durable=False, pending=("x",), hopeless=True)

    api.flush = flush
    assert (await asyncio.to_thread(client.wait_durable, 60)).hopeless


def test_an_unreachable_agent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "RESTART_SECONDS", 0.0)
    with pytest.raises(Unavailable, match=r"http://127\.0\.0\.1:1 does not answer"):
        AgentClient("http://127.0.0.1:1").status()


def test_a_worker_that_is_killed_late_in_a_wait_may_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for a restart counts from the failure, not from the request."""
    monkeypatch.setattr(http_client, "RESTART_SECONDS", 0.5)
    body = msgspec.json.encode(Status())
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            first, _ = listener.accept()
            with first:
                first.recv(4096)
                time.sleep(0.6)  # longer than the time for a restart
            second, _ = listener.accept()
            with second:
                second.recv(4096)
                second.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        worker = threading.Thread(target=serve)
        worker.start()
        assert AgentClient(f"http://127.0.0.1:{listener.getsockname()[1]}").status() == Status()
        worker.join()


async def test_wait_for_returns_at_its_deadline() -> None:
    state = AgentState(Status())
    assert not await state.wait_for(lambda: False, 0.01)
    assert not state._waiters


def test_an_invalid_spec_is_not_retryable() -> None:
    state = AgentState(Status())
    state.fail(InvalidSpec.of("x"))
    assert not state.gate().retryable
