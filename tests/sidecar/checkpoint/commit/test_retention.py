from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from podferry.contract.errors import AccessDenied
from podferry.sidecar.checkpoint.commit.retention import Retention
from podferry.storage.memory.store import Fault
from tests.support.lineage_site import KILLS, LOST


@pytest.mark.parametrize("error", [LOST, AccessDenied.of("no")], ids=["temporary", "permanent"])
@pytest.mark.parametrize(("call", "skip", "after"), KILLS)
async def test_a_failure_is_logged_and_repaired_after_the_next_commit(lineage, call, skip, after, error):
    lineage.faults.append(Fault(call, skip=skip, error=error, after=after))
    retention = Retention(lineage.reader, 1)
    with capture_logs() as logs:
        await retention.after_commit(lineage.put(5, "e/w"))
    struck = sum(done == call for done, _ in lineage.store.content.calls) > skip
    levels = [log["log_level"] for log in logs if "were not removed" in log["event"]]
    assert levels == (["warning"] if struck else [])
    lineage.faults.clear()
    await retention.after_commit(lineage.put(6, "f/w"))
    assert (lineage.sequences, lineage.data) == ([6], {"f/w"})


async def test_the_checkpoint_resumed_from_stays(lineage):
    retention = Retention(lineage.reader, 1, {"s2-00"})
    with capture_logs() as logs:
        await retention.after_commit(lineage.put(5, "e/w"))
    assert (lineage.sequences, lineage.data) == ([2, 5], {"b/w", "e/w"})
    assert logs[-1]["names"] == ["s1", "s3", "s4"]
