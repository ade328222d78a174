from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.destination.commit import FORMAT, Commit, CommittedFile
from podferry.contract.destination.tombstones import (
    RemovalPlan,
    Tombstone,
    decode_tombstone,
    listed_objects,
    plan_removal,
    tombstone_name,
)
from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.versioned_json import encode_document

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def commit(sequence, *objects, name=None):
    name = name or f"step-{sequence}"
    files = tuple(CommittedFile(f"f{n}", text, 10, "0" * 32) for n, text in enumerate(objects))
    return Commit(FORMAT, sequence, "run", f"{name}-{sequence:02d}", name, None, WHEN, files, "w")


OBJECTS = st.sampled_from([f"c{n}/w" for n in range(6)])
HISTORIES = st.lists(st.sets(OBJECTS, min_size=1), max_size=8).map(
    lambda sets: [commit(number, *sorted(objects)) for number, objects in enumerate(sets, 1)]
)


@given(HISTORIES, st.sets(st.integers(1, 8)), st.integers(1, 4), st.sets(st.integers(1, 8)))
def test_what_stays_is_complete_and_enough(commits, complete, keep, protected):
    names = {f"step-{number}" for number in protected}
    plan = plan_removal(commits, complete, keep, names)
    going = {one.sequence for one in plan.commits}
    kept = [one for one in commits if one.sequence not in going]
    good = [one.sequence for one in commits if one.sequence in complete]
    assert set(good[-keep:]).isdisjoint(going)
    assert not going or len([one for one in kept if one.sequence in complete]) >= keep
    assert not going or max(going) < good[-keep]
    assert not names & {one.name for one in plan.commits}
    assert plan.objects.keys().isdisjoint(listed_objects(kept))
    assert plan.objects.keys() | listed_objects(kept).keys() == listed_objects(commits).keys()
    assert [one.sequence for one in plan.commits] == sorted(going)
    assert plan.bytes == 10 * len(plan.objects)


def test_damaged_commits_do_not_count():
    commits = [commit(number, f"c{number}/w") for number in range(1, 6)]
    assert [one.sequence for one in plan_removal(commits, {1, 2, 3}, 2).commits] == [1]
    assert [one.sequence for one in plan_removal(commits, {1, 2, 3, 4, 5}, 2).commits] == [1, 2, 3]
    assert [one.sequence for one in plan_removal(commits, {2, 4}, 2).commits] == [1]


def test_fewer_complete_commits_than_requested_all_stay():
    commits = [commit(1, "a/w"), commit(2, "b/w"), commit(3, "c/w")]
    assert plan_removal(commits, {2}, 2) == RemovalPlan()
    assert plan_removal(commits, set(), 1) == RemovalPlan()
    assert plan_removal([], set(), 1) == RemovalPlan()


def test_a_protected_one_stays_by_name_or_folder_with_its_data():
    commits = [commit(1, "a/w"), commit(2, "b/w"), commit(3, "c/w"), commit(4, "d/w")]
    plan = plan_removal(commits, {1, 2, 3, 4}, 1, {"step-1", "step-2-02"})
    assert ([one.sequence for one in plan.commits], plan.objects) == ([3], {"c/w": 10})


def test_a_record_is_never_data():
    commits = [commit(1, ".podferry/commits/000000000002.json", "a/w"), commit(2, "b/w")]
    assert plan_removal(commits, {1, 2}, 1).objects == {"a/w": 10}


def test_what_two_plans_have_in_common():
    one, two, three = (commit(number, f"c{number}/w") for number in (1, 2, 3))
    first = RemovalPlan((one, two), {"c1/w": 10, "c2/w": 10})
    assert RemovalPlan((two, three), {"c2/w": 10, "c3/w": 10}).within(first) == RemovalPlan(
        (two,), {"c2/w": 10}
    )


def test_the_record_of_a_removal_is_read_back():
    record = Tombstone(1, "me", {"a/w": 3}, {"b/w": 4})
    assert tombstone_name("me") == ".podferry/removing/me.json"
    text = encode_document(record)
    assert text == (
        b'{\n "format": 1,\n "remover": "me",\n "planned": {\n  "a/w": 3\n },'
        b'\n "settled": {\n  "b/w": 4\n }\n}'
    )
    assert decode_tombstone(text, "x") == record
    with pytest.raises(Corrupt, match="x is not a valid tombstone"):
        decode_tombstone(b"{}", "x")
    with pytest.raises(FormatTooNew):
        decode_tombstone(b'{"format": 2}', "x")
