"""Which commits count as checkpoints of a lineage."""

from __future__ import annotations

from podferry.sidecar.checkpoint.commit.main_kind import main_commits, newest_main
from tests.support.lineage_site import Lineage


async def numbers(lineage):
    return [commit.sequence async for commit in main_commits(lineage.reader.newest_first())]


async def test_states_count_and_others_only_without_any():
    lineage = Lineage()
    assert await newest_main(lineage.reader.newest_first()) is None
    lineage.put(1, "a/metrics.json")
    assert await numbers(lineage) == [1]
    lineage.put(2, "a/model_1.json")
    lineage.put(3, "a/plot.png")
    assert await numbers(lineage) == [2]
    lineage.put(4, "a/model_1.pt")
    lineage.put(5, "b/plot.png")
    assert await numbers(lineage) == [4]
    lineage.put(6, "b/model_2.pt", "b/config.json")
    assert await numbers(lineage) == [6, 4]
    assert (await newest_main(lineage.reader.newest_first())).sequence == 6


async def test_a_small_file_next_to_a_state_counts_only_without_one():
    lineage = Lineage()
    lineage.put(1, "last_step")
    lineage.put(2, "marker")
    lineage.put(3, "train.pid")
    assert await numbers(lineage) == [2]
    lineage.put(4, "step-200.bin")
    lineage.put(5, "study.db")
    lineage.put(6, "last_step")
    assert await numbers(lineage) == [4]


async def test_late_ones_follow_all_others_of_the_main_kind():
    lineage = Lineage()
    lineage.put(1, "metrics.json")
    lineage.put(2, "best.json", late=True)
    assert await numbers(lineage) == [2]
    lineage.put(3, "model_5.json")
    lineage.put(4, "archived_4.json", late=True)
    assert await numbers(lineage) == [3, 4, 2]
    lineage.put(5, "model_6.pt")
    lineage.put(6, "metrics.json", late=True)
    assert await numbers(lineage) == [5, 4, 2]


async def test_no_older_commit_is_read_than_the_newest_state_needs():
    lineage = Lineage()
    for number in range(1, 200):
        lineage.put(number, f"{number}/w.pt")
    lineage.put(200, "c/metrics.json")
    assert (await newest_main(lineage.reader.newest_first())).sequence == 199
    assert sum(call == "read" for call, _ in lineage.store.content.calls) <= 6
