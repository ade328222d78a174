"""The agent's HTTP API over a real socket, with the real client."""

from __future__ import annotations

import asyncio

import pytest

from podferry.contract.errors import Problem, Refused, Unavailable
from podferry.contract.http_api import Durability, Gate, Marked
from podferry.contract.status import AgentPhase, DatasetStatus
from podferry.sidecar.control.agent_api import AgentApi
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.state.agent_state import AgentState
from tests.support.patience import PATIENCE
from tests.support.served_agent import metrics_of


async def test_status_is_the_complete_document(served: tuple[AgentApi, AgentState, AgentClient]) -> None:
    _, state, client = served
    state.status.starts = 3
    assert await asyncio.to_thread(client.status) == state.status


async def test_gate_responds_when_it_opens(served: tuple[AgentApi, AgentState, AgentClient]) -> None:
    _, state, client = served
    asked = asyncio.create_task(asyncio.to_thread(client.wait_for_gate))
    gate = Gate(open=True, environment={"PODFERRY_DATASET": "/d"}, summary="all there")
    asyncio.get_running_loop().call_soon(state.open_gate, gate)
    async with asyncio.timeout(PATIENCE):
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


async def test_a_mark_reaches_its_callback(served: tuple[AgentApi, AgentState, AgentClient]) -> None:
    api, _, client = served
    answer = await asyncio.to_thread(client.mark_done, "step 1/2")
    assert answer.checkpoint is None
    assert "gate has not opened" in answer.problems[0].measured

    async def mark(checkpoint: str) -> Marked:
        return Marked(checkpoint=checkpoint.upper())

    api.mark = mark
    assert (await asyncio.to_thread(client.mark_done, "step 1/2")).checkpoint == "STEP 1/2"


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
