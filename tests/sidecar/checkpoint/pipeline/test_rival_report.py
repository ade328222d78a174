"""Two runs of one lineage: what the earlier one shows without a checkpoint of its own."""

from __future__ import annotations

import msgspec
from structlog.testing import capture_logs

from podferry.sidecar.checkpoint.commit.rival_watch import announce
from podferry.storage.memory.store import Fault
from tests.support.lineage_site import LOST


def levels(logs):
    levels = [log["log_level"] for log in logs if "another" in log["event"]]
    return [level for level in levels if level != "debug"]


def looks(rig):
    return len([name for call, name in rig.content.calls if call == "read" and name.endswith("writer.json")])


async def test_a_second_run_shows_when_it_starts_and_its_commit_fences_at_once(any_rig):
    any_rig.settings = msgspec.structs.replace(any_rig.settings, rival_seconds=0.01)
    async with any_rig.running() as pipeline:
        any_rig.write("step-1.bin", b"1" * 100)
        await any_rig.committed(1)
        other, status = any_rig.committer("two"), pipeline._status
        with capture_logs() as logs:
            await announce(other.store, other.identity, other._now)
            await any_rig.until(lambda: "agent two" in status.rival)
            assert not status.fenced
            any_rig.faults.append(Fault("read", "*writer.json", error=LOST))
            standing = any_rig.store.commits()[0]
            await other.commit("step-5", "step-5-x", standing.files)
            await any_rig.until(lambda: status.fenced)
        assert "two created commit 2" in str(status.problems[0])
        assert levels(logs) == ["warning", "error"]


async def test_a_rival_is_reported_once_even_if_the_store_does_not_answer_in_between(any_rig):
    any_rig.settings = msgspec.structs.replace(any_rig.settings, rival_seconds=0.01)
    async with any_rig.running() as pipeline:
        other, status = any_rig.committer("two"), pipeline._status
        with capture_logs() as logs:
            await announce(other.store, other.identity, other._now)
            await any_rig.until(lambda: status.rival)
            any_rig.faults.append(Fault("read", "*writer.json", times=3, error=LOST))
            any_rig.content.calls.clear()
            await any_rig.until(lambda: looks(any_rig) > 4)
            assert "agent two" in status.rival
        assert levels(logs) == ["warning"]
