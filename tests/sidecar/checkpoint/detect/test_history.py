from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.destination.commit import Doubt, DoubtKind
from podferry.contract.destination.series import series_of
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.history import (
    MAX_SAVES,
    SAME_SIZE_BYTES,
    Save,
    SaveHistory,
    baseline_of,
    clearly_smaller,
    missing_names,
    shrunk_files,
    written_files,
)
from podferry.sidecar.runtime.file_identity import FileIdentity

MIB = 1 << 20


def of(name, at, **sizes):
    files = tuple((file, FileIdentity(at, size, at)) for file, size in sizes.items())
    return Candidate(name, files)


def raw(step, size, at=None):
    identity = FileIdentity(step, size, step if at is None else at)
    return Candidate(f"step-{step}", ((f"step-{step}.raw", identity),))


def save(candidate, *, sure=True):
    doubts = () if sure else (Doubt(DoubtKind.UNPROVEN, "no end"),)
    names = frozenset(candidate.data_files)
    return Save(replace(candidate, doubts=doubts), names, names, {}, frozenset())


def history(*candidates):
    found = SaveHistory()
    for candidate in candidates:
        found.add(save(candidate))
    return found


def short(candidate, accepted=()):
    return [name for name, _ in shrunk_files(candidate, history(*accepted).earlier(candidate))]


def test_a_series_is_the_name_without_its_digits():
    assert series_of("epoch=3-step=1200.raw") == series_of("epoch=12-step=4800.raw")
    assert series_of("last.raw") != series_of("best.raw")


@pytest.mark.parametrize(
    ("size", "before", "expected"),
    [
        (89, [], False),
        (9 * MIB, [10 * MIB], False),
        (9 * MIB - 1, [10 * MIB], True),
        (11 * MIB, [10 * MIB], False),
        (10, [SAME_SIZE_BYTES], False),
        (10 * MIB - SAME_SIZE_BYTES, [10 * MIB, 10 * MIB + SAME_SIZE_BYTES], False),
        (10 * MIB - SAME_SIZE_BYTES - 1, [10 * MIB, 10 * MIB + SAME_SIZE_BYTES], True),
        (10 * MIB - SAME_SIZE_BYTES - 1, [10 * MIB, 10 * MIB + SAME_SIZE_BYTES + 1], False),
        (9 * MIB, [5 * MIB, 10 * MIB], False),
        (0, [100], True),
        (0, [0], False),
    ],
)
def test_clearly_smaller(size, before, expected):
    assert clearly_smaller(size, before) is expected


@given(st.integers(0, 1 << 40), st.lists(st.integers(0, 1 << 40), max_size=4))
def test_a_file_that_did_not_shrink_is_always_plausible(size, before):
    assert not (clearly_smaller(size, before) and size >= max(before[0] - SAME_SIZE_BYTES, 1))


def test_a_file_is_compared_with_the_newest_earlier_one():
    accepted = [raw(1, 5 * MIB), raw(2, 5 * MIB), raw(3, 10 * MIB)]
    assert short(raw(4, 6 * MIB), accepted) == ["step-4.raw"]
    assert short(raw(4, 6 * MIB, at=2), accepted) == []  # older than the large one


def test_other_series_are_ignored():
    other = Candidate("best", (("best.raw", FileIdentity(1, 10 * MIB, 1)),))
    assert short(raw(4, MIB), [other]) == []


def ranks(step, *sizes):
    names = [f"step-{step}/rank{number}.raw" for number in range(8, 8 + len(sizes))]
    identities = [FileIdentity(step, size, step) for size in sizes]
    return Candidate(f"step-{step}", tuple(zip(names, identities, strict=True)))


def test_each_rank_is_compared_with_itself():
    one = ranks(1, 10 * MIB, 8 * MIB, 5 * MIB)
    assert short(ranks(2, 10 * MIB, 8 * MIB, 5 * MIB), [one]) == []
    assert short(ranks(2, 10 * MIB, 8 * MIB, 2 * MIB), [one]) == ["step-2/rank10.raw"]
    assert short(ranks(2, 10 * MIB, MIB), [one]) == []  # which is which is not known


def test_missing_names_are_counted_without_their_digits():
    one, two = ranks(1, 1, 1, 1), ranks(2, 1, 1)
    assert missing_names(two, one) == ["step-1/rank10.raw"]
    assert missing_names(one, two) == []
    assert missing_names(of("step-3", 3, **{"step-3/other.raw": 1}), two) == [
        "step-2/rank8.raw",
        "step-2/rank9.raw",
    ]


def test_the_baseline_is_the_newest_sure_save():
    found = history(raw(1, 1), raw(2, 1))
    found.add(save(raw(3, 1), sure=False))
    earlier = found.earlier(raw(4, 1))
    assert baseline_of(earlier).candidate.name == "step-2"
    assert baseline_of(earlier[:1]).candidate.name == "step-3"
    assert baseline_of([]) is None


def test_a_settled_doubt_is_taken_over():
    found = SaveHistory()
    doubtful = save(raw(3, 1), sure=False)
    found.add(doubtful)
    found.update([raw(3, 1)])
    assert found.doubtful() == []
    assert found.earlier(raw(4, 1))[0].is_sure


def test_only_the_newest_saves_of_a_series_are_remembered():
    found = history(*(raw(step, 1) for step in range(1, 40)))
    names = [one.candidate.name for one in found.earlier(raw(99, 1))]
    assert names == [f"step-{step}" for step in range(39, 39 - MAX_SAVES, -1)]


def test_what_a_save_wrote_is_what_changed_since_the_sure_one_of_its_name():
    before = Candidate("last", (("last/a", FileIdentity(1, 1, 1)), ("last/b", FileIdentity(2, 1, 1))))
    now = Candidate("last", (("last/a", FileIdentity(3, 1, 2)), ("last/b", FileIdentity(2, 1, 1))))
    assert written_files(now, history(before).earlier(now)) == {"last/a"}
    assert written_files(now, []) == {"last/a", "last/b"}


def flat(name, at, *stems):
    return of(name, at, **{f"{stem}.pt": 9 for stem in stems})


def test_a_file_alone_is_compared_with_the_saves_that_had_others():
    """The file that the group is named after is late."""
    both, other = flat("D_1", 1, "D_1", "G_1"), flat("other_1", 1, "other_1")
    known = history(both, other)
    assert [one.candidate for one in known.earlier(flat("G_2", 2, "G_2"))] == [both]
    newer = flat("G_3", 3, "G_3")
    known.add(save(newer))
    assert [one.candidate for one in known.earlier(flat("G_4", 4, "G_4"))] == [newer, both]
    assert known.earlier(flat("x", 4, "x_4")) == []
