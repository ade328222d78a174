from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.contract.destination.commit import FORMAT, Commit, CommittedFile, Confidence
from podferry.contract.destination.series import series_of
from podferry.contract.destination.tombstones import (
    SERIES_KEPT,
    RemovalPlan,
    Tombstone,
    adds_series,
    decides,
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


KINDS = st.sampled_from([Confidence.SURE, Confidence.DOUBTFUL])
NAMES = st.sampled_from(["last", "best", ""])
"""An empty name is one of its own."""
HISTORIES = st.lists(st.tuples(KINDS, NAMES), max_size=10).map(
    lambda made: [
        msgspec.structs.replace(commit(number, "w", name=name or f"step-{number}"), confidence=kind)
        for number, (kind, name) in enumerate(made, 1)
    ]
)


def sequences(commits):
    return [one.sequence for one in commits]


@settings(deadline=None)
@given(HISTORIES, st.sets(st.integers(1, 10)), st.integers(1, 4), st.sets(st.integers(1, 10)))
def test_what_stays_is_complete_and_enough(commits, complete, keep, protected):
    names = {f"step-{number}" for number in protected}
    removed = plan_removal(commits, complete, keep, names)
    going = set(sequences(removed))
    good = [one for one in commits if one.sequence in complete]
    kept = [one for one in good if one.sequence not in going]
    assert not going or len(kept) >= keep
    assert not going or len(set(sequences(good[-keep:])) & going) == 0
    sure = {series_of(one.name): one.sequence for one in good if one.is_sure}
    assert not set(sure.values()) & going, "the newest sure one of each series always stays"
    assert not names & {one.name for one in removed}
    assert sequences(removed) == sorted(going)


@settings(deadline=None)
@given(HISTORIES, st.sets(st.integers(1, 10)), st.integers(1, 4))
def test_more_complete_ones_than_decide_change_nothing(commits, complete, keep):
    found = []
    for one in reversed(commits):
        enough, series = decides(found, keep)
        if one.sequence in complete and (not enough or adds_series(one, series)):
            found.append(one)
    few = plan_removal(commits, set(sequences(found)), keep)
    assert few == plan_removal(commits, complete, keep)


def kinds(text, *names):
    """One commit for each letter: `s` sure, `d` doubtful."""
    names = names or [f"step-{number}" for number in range(1, len(text) + 1)]
    kind = {"s": Confidence.SURE, "d": Confidence.DOUBTFUL}
    return [
        msgspec.structs.replace(commit(number, "w", name=name), confidence=kind[letter])
        for number, (letter, name) in enumerate(zip(text, names, strict=True), 1)
    ]


@pytest.mark.parametrize(
    ("text", "keep", "removed"),
    [
        ("ssss", 2, [1, 2]),
        ("sddd", 2, [2]),
        ("ssdd", 1, [1, 3]),
        ("dddd", 2, [1, 2]),
        ("sdds", 1, [1, 2, 3]),
        ("sd", 2, []),
    ],
)
def test_either_kind_counts_and_the_newest_sure_one_stays(text, keep, removed):
    commits = kinds(text)
    assert sequences(plan_removal(commits, set(sequences(commits)), keep)) == removed


def test_a_doubtful_one_does_not_count_if_a_later_sure_one_has_its_name():
    commits = kinds("sds", "epoch-1", "epoch-2", "epoch-2")
    assert sequences(plan_removal(commits, {1, 2, 3}, 2)) == []
    assert sequences(plan_removal(commits, {1, 2, 3}, 1)) == [1, 2]


def test_another_series_pushes_out_no_last_sure_one():
    commits = kinds("ssdss", "model-1", "model-2", "model-3", "vocab", "vocab")
    everything = set(sequences(commits))
    assert sequences(plan_removal(commits, everything, 1)) == [1, 3, 4]
    assert sequences(plan_removal(commits, everything - {2}, 1)) == [2, 3, 4]


def test_names_that_are_all_different_do_not_keep_everything():
    names = [chr(ord("a") + number) for number in range(SERIES_KEPT + 2)]
    commits = kinds("s" * len(names), *names)
    assert sequences(plan_removal(commits, set(sequences(commits)), 1)) == [1, 2]


def test_damaged_commits_do_not_count():
    commits = [commit(number, f"c{number}/w") for number in range(1, 6)]
    assert sequences(plan_removal(commits, {1, 2, 3}, 2)) == [1]
    assert sequences(plan_removal(commits, {1, 2, 3, 4, 5}, 2)) == [1, 2, 3]
    assert sequences(plan_removal(commits, {2, 4}, 2)) == [1]


def test_fewer_complete_commits_than_requested_all_stay():
    commits = [commit(1, "a/w"), commit(2, "b/w"), commit(3, "c/w")]
    assert plan_removal(commits, {2}, 2) == ()
    assert plan_removal(commits, set(), 1) == ()
    assert plan_removal([], set(), 1) == ()


def test_a_protected_one_stays_by_name_or_folder():
    commits = [commit(1, "a/w"), commit(2, "b/w"), commit(3, "c/w"), commit(4, "d/w")]
    assert sequences(plan_removal(commits, {1, 2, 3, 4}, 1, {"step-1", "step-2-02"})) == [3]


def test_a_record_is_never_data():
    commits = [commit(1, ".podferry/commits/000000000002.json", "a/w"), commit(2, "b/w")]
    assert listed_objects(commits) == {"a/w": 10, "b/w": 10}
    assert RemovalPlan((), {"a/w": 10, "b/w": 10}).bytes == 20


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
