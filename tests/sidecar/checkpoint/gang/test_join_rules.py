from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from podferry.contract.destination.commit import Commit, CommittedFile
from podferry.contract.destination.rank_parts import RankPart
from podferry.contract.errors import Refused
from podferry.sidecar.checkpoint.gang.join_rules import contains, missing_ranks, newer, superset_of
from tests.support.gang_site import file, joined_gang, parts

FILES = (CommittedFile("w", "own-0/w", 1, "a" * 32), CommittedFile("v", "own-0/v", 2, "b" * 32))


def part(rank=0, epoch="now", files=FILES, name="step-5", world=2):
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return RankPart(
        1, "run", name, 5, rank, world, f"w{rank}", f"{rank}-w{rank}", epoch, 0, "own-0", files, when
    )


def commit(name="step-5", rank=0, files=FILES):
    ranked = tuple(msgspec.structs.replace(file, rank=rank) for file in files)
    return Commit(1, 1, "run", f"{name}-00", name, None, datetime(2026, 1, 1, tzinfo=UTC), ranked, "w", 2)


async def test_a_name_without_a_step_is_refused(site):
    one, _ = await joined_gang(site)
    with pytest.raises(Refused, match="several pods write together need a step"):
        await one.publish("last", "own-0", (file("last", "a", "own-0"),), site.time)
    assert parts(site) == []


def test_files_may_only_be_added_to_a_part():
    one, two = FILES
    assert superset_of(part(), FILES)
    assert superset_of(part(files=(one,)), FILES)
    assert not superset_of(part(), (one,))
    assert not superset_of(part(), (one, msgspec.structs.replace(two, xxh128="c" * 32)))
    assert superset_of(part(), (one, msgspec.structs.replace(two, object="elsewhere/v")))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (commit(), True),
        (commit(rank=None), True),
        (commit(rank=1), False),
        (commit(name="step-6"), False),
        (commit(files=FILES[:1]), False),
    ],
)
def test_a_commit_contains_a_part_with_all_its_files(found, expected):
    assert contains(found, part()) is expected


def test_a_part_of_another_epoch_or_world_does_not_count():
    parts = {0: part(0), 1: part(1, epoch="before"), 2: part(2), 3: part(3)}
    assert missing_ranks(parts, 2, "now") == [1]
    assert missing_ranks({0: part(0, world=3)}, 2, "now") == [0, 1]


@pytest.mark.parametrize(
    ("name", "base", "expected"),
    [
        ("step-5", 1, "step-7"),
        ("step-7", 1, "step-7"),
        ("step-8", 1, None),
        ("best-5", 1, None),
        ("step-5", 3, None),
    ],
)
def test_newer_is_a_later_commit_of_the_same_series(name, base, expected):
    found = newer({1: commit("step-9"), 2: commit("last"), 3: commit("step-7")}, name, base)
    assert (found and found.name) == expected
