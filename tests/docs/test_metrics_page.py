"""docs/metrics.md lists every metric of the agent, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from podferry.contract.status import (
    AgentPhase,
    CheckpointStatus,
    DatasetStatus,
    DurableCheckpoint,
    OutputStatus,
    Status,
)
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.prometheus import exposition

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
NAME = re.compile(r"`(podferry_\w+)")


def names() -> set[str]:
    """Of all metrics, as in the exposition; counters end in `_total`."""
    last = DurableCheckpoint("step-1", 1, 1, 1, 1.0, 1.0)
    checkpoints = CheckpointStatus("s3://b", "/c", "digits", durable=[last], durable_count=1)
    status = Status(
        AgentPhase.OPEN, [DatasetStatus("s3://b", "/d")], checkpoints, OutputStatus("s3://b", "/o")
    )
    families = text_string_to_metric_families(exposition(status, Durations()).decode())
    found = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    # The client adds these to each histogram.
    return {name for name in found if not name.endswith("_created")}


def test_the_table_lists_every_metric() -> None:
    rows = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `podferry_")]
    assert {name for row in rows for name in NAME.findall(row)} == names()


def test_every_phase_is_listed() -> None:
    text = PAGE.read_text()
    assert [phase for phase in AgentPhase if f"`{phase.value}`" not in text] == []
