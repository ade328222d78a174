from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from podferry.contract.errors import AccessDenied
from podferry.sidecar.checkpoint.commit import retention as retention_module
from podferry.sidecar.checkpoint.commit.retention import Retention
from podferry.storage.memory.store import Fault
from tests.support.lineage_site import KILLS, LOST


@pytest.mark.parametrize("error", [LOST, AccessDenied.of("no")], ids=["temporary", "permanent"])
@pytest.mark.parametrize(("call", "skip", "after"), KILLS)
async def test_a_failure_is_logged_and_repaired_after_the_next_commit(lineage, call, skip, after, error):
    lineage.faults.append(Fault(call, skip=skip, error=error, after=after))
    retention = Retention(lineage.reader, 1)
    with capture_logs() as logs:
        retention.request(lineage.put(5, "e/w"))
        await retention.remove()
    struck = sum(done == call for done, _ in lineage.store.content.calls) > skip
    levels = [log["log_level"] for log in logs if "were not removed" in log["event"]]
    assert levels == (["warning"] if struck else [])
    lineage.faults.clear()
    retention.request(lineage.put(6, "f/w"))
    await retention.remove()
    assert (lineage.sequences, lineage.data) == ([6], {"f/w"})


async def test_the_checkpoint_resumed_from_stays(lineage):
    retention = Retention(lineage.reader, 1, {"s2-00"})
    with capture_logs() as logs:
        retention.request(lineage.put(5, "e/w"))
        await retention.remove()
    assert (lineage.sequences, lineage.data) == ([2, 5], {"b/w", "e/w"})
    assert logs[-1]["names"] == ["s1", "s3", "s4"]


async def test_several_requests_become_one_removal(lineage):
    go = asyncio.Event()
    lineage.faults.append(Fault("delete", wait=go))
    retention = Retention(lineage.reader, 1)
    task = asyncio.create_task(retention.run())
    for number in range(5, 9):
        retention.request(lineage.put(number, f"{number}/w"))
        await asyncio.sleep(0)
    go.set()
    await retention.settle(30)
    assert (lineage.sequences, lineage.data) == ([8], {"8/w"})
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_nothing_is_read_while_there_are_few_commits(lineage):
    retention = Retention(lineage.reader, 10)
    retention.request(lineage.put(5, "e/w"))
    await retention.remove()
    lineage.store.content.calls.clear()
    retention.request(lineage.put(6, "f/w"))
    await retention.remove()
    assert sorted(name for _, name in lineage.store.content.calls) == [
        "run/.podferry/commits",
        "run/.podferry/confirmed",
    ]


async def test_many_are_removed_in_portions(lineage, monkeypatch):
    monkeypatch.setattr(retention_module, "PORTION", 3)
    for number in range(5, 15):
        lineage.put(number, f"{number}/w")
    retention = Retention(lineage.reader, 2)
    with capture_logs() as logs:
        await retention.remove()
    assert lineage.sequences == [13, 14]
    assert [len(log["names"]) for log in logs] == [3, 3, 3, 3]
