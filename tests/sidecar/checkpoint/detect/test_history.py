import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.history import (
    SAME_SIZE_BYTES,
    History,
    clearly_smaller,
    history_of,
    missing_sticky_file,
    moved_in,
    series_of,
    shrunk_files,
)
from podferry.sidecar.runtime.file_identity import FileIdentity

MIB = 1 << 20


def of(name, at, **sizes):
    files = tuple((file, FileIdentity(at, size, at)) for file, size in sizes.items())
    return Candidate(name, files)


def raw(step, size, at=None):
    identity = FileIdentity(step, size, step if at is None else at)
    return Candidate(f"step-{step}", ((f"step-{step}.raw", identity),))


def short(candidate, accepted=(), present=()):
    return [name for name, _ in shrunk_files(candidate, history_of(candidate, accepted, present))]


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
    ],
)
def test_clearly_smaller(size, before, expected):
    assert clearly_smaller(size, before) is expected


@given(st.integers(0, 1 << 40), st.lists(st.integers(0, 1 << 40), max_size=4))
def test_a_file_that_did_not_shrink_is_always_plausible(size, before):
    assert not (clearly_smaller(size, before) and size >= before[0] - SAME_SIZE_BYTES)


def test_a_file_is_compared_with_the_newest_earlier_one():
    accepted = [raw(1, 5 * MIB), raw(3, 10 * MIB), raw(2, 5 * MIB)]
    assert short(raw(4, 6 * MIB), accepted) == ["step-4.raw"]
    assert short(raw(4, 6 * MIB, at=2), accepted) == []  # older than the large one


def test_other_series_are_ignored():
    other = Candidate("best", (("best.raw", FileIdentity(1, 10 * MIB, 1)),))
    assert short(raw(4, MIB), [other]) == []


def test_two_files_of_the_same_size_are_intended():
    assert short(raw(4, 5 * MIB), [raw(3, 10 * MIB)], [raw(5, 5 * MIB)]) == []
    assert short(raw(4, 5 * MIB), [raw(3, 10 * MIB)], [raw(5, 6 * MIB)]) == ["step-4.raw"]
    assert short(raw(4, 5 * MIB), [raw(3, 10 * MIB)], [raw(4, 5 * MIB)]) == ["step-4.raw"]  # itself
    assert short(raw(4, 5 * MIB), [raw(3, 10 * MIB), raw(2, 5 * MIB)]) == []


def ranks(step, *sizes):
    names = [f"step-{step}/rank{number}.raw" for number in range(8, 8 + len(sizes))]
    identities = [FileIdentity(step, size, step) for size in sizes]
    return Candidate(f"step-{step}", tuple(zip(names, identities, strict=True)))


def test_each_rank_is_compared_with_itself():
    one = ranks(1, 10 * MIB, 8 * MIB, 5 * MIB)
    assert short(ranks(2, 10 * MIB, 8 * MIB, 5 * MIB), [one]) == []
    assert short(ranks(2, 10 * MIB, 8 * MIB, 2 * MIB), [one]) == ["step-2/rank10.raw"]
    assert short(ranks(2, 10 * MIB, MIB), [one]) == []  # which is which is not known


def test_files_older_than_the_one_written_last_are_plausible():
    before = of("checkpoint-1", 1, **{"checkpoint-1/m.raw": 10 * MIB})
    files = (
        ("checkpoint-2/m.raw", FileIdentity(2, MIB, 2)),
        ("checkpoint-2/training_args.bin", FileIdentity(3, 1, 2)),
    )
    end = ("checkpoint-2/trainer_state.json", FileIdentity(4, 1, 3))
    stale = ("checkpoint-2/trainer_state.json", FileIdentity(4, 1, 1))
    for last, expected in (((), 1), ((end,), 0), ((stale,), 1)):
        assert len(short(Candidate("checkpoint-2", files + last), [before])) == expected


def test_a_file_that_shows_only_its_own_end_confirms_no_others():
    before = of("m-1", 1, **{"m-1.raw": 10 * MIB, "m-1.safetensors": 10})
    now = of("m-2", 2, **{"m-2.raw": MIB, "m-2.safetensors": 10})
    assert short(now, [before]) == ["m-2.raw"]


def test_a_sticky_file_of_the_previous_checkpoint_is_required():
    both = of("e-1", 1, **{"e-1.pdparams": 1, "e-1.pdopt": 1})
    alone = of("e-2", 2, **{"e-2.pdparams": 1})
    assert missing_sticky_file(alone, History((both,)), gang=False) == (
        "e-2.pdparams exists, e-2.pdopt does not yet, and e-1 had one"
    )
    assert missing_sticky_file(alone, History((alone,)), gang=False) is None
    assert missing_sticky_file(alone, History(()), gang=False) is None
    assert missing_sticky_file(both, History((both,)), gang=False) is None


def test_a_rename_is_visible_in_the_times(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"1")
    assert not moved_in(path)
    os.utime(path, ns=(0, 0))
    assert moved_in(path)
    assert not moved_in(tmp_path / "gone")
