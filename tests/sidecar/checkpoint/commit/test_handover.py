"""The final notes of agents, and the wait for an agent that drains."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from podferry.contract.destination.agent_notes import DrainPhase, decode_note
from podferry.contract.errors import Problem, Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit import handover as module
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.handover import REPORT_SECONDS, Handover
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.memory.store import Content, Fault, MemoryStore
from tests.support.patience import PATIENCE

AT = datetime(2026, 3, 1, tzinfo=UTC)
OLD = "base/run/.podferry/notes/old.json"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(parse_uri("memory://notes/base"), Content())


def notes(store: MemoryStore, writer: str) -> Handover:
    return Handover(LineageStore(store, "run"), AgentIdentity(writer), lambda: AT)


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Makes sleeping instant; lists the seconds slept."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    return waited


async def test_without_notes_there_is_no_wait(store: MemoryStore, ticks: list[float]) -> None:
    await notes(store, "new").wait()
    assert ticks == []


async def test_a_draining_agent_is_waited_for_until_it_ends(store: MemoryStore) -> None:
    old = notes(store, "old")
    await old.write_note(DrainPhase.DRAINING, 30.0)
    waiting = asyncio.create_task(notes(store, "new").wait())
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    await old.write_note(DrainPhase.ENDED)
    await asyncio.wait_for(waiting, PATIENCE)
    assert decode_note(store.content.objects[OLD], OLD).phase is DrainPhase.ENDED


async def test_a_killed_agent_is_waited_for_only_as_long_as_its_note_says(
    store: MemoryStore, ticks: list[float]
) -> None:
    await notes(store, "old").write_note(DrainPhase.DRAINING, 7.0)
    with capture_logs() as logs:
        await notes(store, "new").wait()
    assert sum(ticks) == 7.0 + REPORT_SECONDS
    assert any("did not finish draining in time" in line["event"] for line in logs)
    await notes(store, "third").wait()
    assert sum(ticks) == 7.0 + REPORT_SECONDS, "no agent waits for it again"


async def test_the_last_note_of_an_agent_that_used_up_its_time_is_read(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, waited = notes(store, "old"), 0.0

    async def sleep(seconds: float) -> None:
        nonlocal waited
        waited += seconds
        if waited == 8.0:
            await old.write_note(DrainPhase.ENDED, pending=("step-2",))

    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    await old.write_note(DrainPhase.DRAINING, 7.0)
    with capture_logs() as logs:
        await notes(store, "new").wait()
    assert [line["checkpoints"] for line in logs if "checkpoints" in line] == [("step-2",)]


async def test_an_agent_does_not_wait_for_itself(store: MemoryStore, ticks: list[float]) -> None:
    await notes(store, "new").write_note(DrainPhase.DRAINING, 7.0)
    await notes(store, "new").wait()
    assert ticks == []


async def test_pending_checkpoints_stay_in_the_note(store: MemoryStore) -> None:
    problem = Problem("the grace period was used up", "5 s", "Raise it")
    await notes(store, "old").write_note(DrainPhase.ENDED, pending=("step-2",), problems=(problem,))
    note = decode_note(store.content.objects[OLD], OLD)
    assert (note.pending, note.problems, note.at) == (("step-2",), (problem,), AT)
    with capture_logs() as logs:
        await notes(store, "new").wait()
    assert any(line.get("checkpoints") == ("step-2",) for line in logs)


async def test_a_note_that_cannot_be_read_is_skipped(store: MemoryStore, ticks: list[float]) -> None:
    store.content.objects[OLD] = b"{"
    await notes(store, "new").wait()
    assert ticks == []


async def test_a_failing_store_does_not_stop_the_shutdown(store: MemoryStore) -> None:
    store.content.faults.append(Fault("write", "*", error=Unavailable.of("down")))
    with capture_logs() as logs:
        await notes(store, "old").write_note(DrainPhase.DRAINING, 5.0)
    assert [line["log_level"] for line in logs] == ["warning"]
