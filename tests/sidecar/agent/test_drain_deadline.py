"""The drain's clock, and the final reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from podferry.contract.errors import Problem
from podferry.contract.http_api import Durability
from podferry.sidecar.agent import drain_deadline as module
from podferry.sidecar.agent.drain_deadline import DrainDeadline
from podferry.sidecar.state.journal import Journal

GRACE = 20.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_the_clock_starts_once_and_outlives_the_worker(tmp_path: Path) -> None:
    clock = Clock()
    ending = DrainDeadline(Journal(tmp_path), GRACE, clock)
    assert ending.left() == GRACE
    await ending.begin()
    clock.now += 5
    await ending.begin()
    assert ending.left() == 15
    clock.now += 5
    assert DrainDeadline(Journal(tmp_path), GRACE, clock).left() == 10


async def test_a_past_drain_does_not_shorten_the_next(tmp_path: Path) -> None:
    clock, journal = Clock(), Journal(tmp_path)
    await DrainDeadline(journal, GRACE, clock).begin()
    journal.agent.newest_first = True
    journal.save()
    clock.now += GRACE + 1
    journal = Journal(tmp_path)
    assert DrainDeadline(journal, GRACE, clock).left() == GRACE
    assert not journal.agent.newest_first


@pytest.mark.parametrize(
    ("problems", "reason"),
    [((Problem("the store is down", "503"),), "the store is down"), ((), "the grace period was used up")],
)
async def test_what_is_not_durable_is_named_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problems: tuple[Problem, ...], reason: str
) -> None:
    said: list[str] = []
    monkeypatch.setattr(module, "leave_message", said.append)
    with capture_logs() as logs:
        await DrainDeadline(Journal(tmp_path), GRACE).conclude(
            Durability(durable=False, pending=("step-2", "step-1"), problems=problems)
        )
    assert "step-2, step-1" in said[0]
    assert reason in said[0]
    assert logs[0]["checkpoints"] == ("step-2", "step-1")


async def test_a_successful_drain_reports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "leave_message", pytest.fail)
    with capture_logs() as logs:
        await DrainDeadline(Journal(tmp_path), GRACE).conclude(Durability(durable=True))
    assert logs == []
