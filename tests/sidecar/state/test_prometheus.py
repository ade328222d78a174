from __future__ import annotations

from podferry.contract.status import (
    AgentPhase,
    CheckpointStatus,
    DatasetStatus,
    DurableCheckpoint,
    OutputStatus,
)
from podferry.sidecar.control.agent_api import AgentApi
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.state.agent_state import AgentState
from podferry.sidecar.state.transfer_counters import TransferCounters
from tests.support.served_agent import metrics_of


async def test_metrics_match_the_status(served: tuple[AgentApi, AgentState, AgentClient]) -> None:
    _, state, client = served
    done = DurableCheckpoint("step-7", 3, 7, 10, completed_at=1.0, durable_at=2.0)
    state.status.checkpoints = CheckpointStatus(
        uri="s3://b/c",
        path="/c",
        lineage="l",
        durable=[done],
        durable_count=1,
        pending=["step-8"],
        pending_bytes=99,
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


async def test_each_metric_is_exposed_once(served: tuple[AgentApi, AgentState, AgentClient]) -> None:
    """Prometheus takes one sample of those with the same name, and `promtool check metrics` refuses them."""
    _, state, client = served
    done = DurableCheckpoint("step-7", 3, 7, 10, completed_at=1.0, durable_at=2.0)
    names = {"a": "a link", "b": "a link"}
    state.status.checkpoints = CheckpointStatus(
        "s3://b/c", "/c", "l", durable=[done], ignored_names=names, ignored_count=70
    )
    state.status.datasets = [DatasetStatus("s3://b/d", "/d")]
    state.status.outputs = OutputStatus("s3://b/o", "/o")
    lines = await metrics_of(client)
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert sorted(families) == sorted(set(families))
    assert "podferry_checkpoint_ignored_names 70.0" in lines


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
