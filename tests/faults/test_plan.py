from collections import Counter

import pytest

from faults.known import KNOWN
from faults.plan import ENDS, PLACE, PROCESS, STORE, plan

WRITERS = list(KNOWN)
SEEDS = range(400)


def test_a_seed_determines_the_plan():
    assert [plan(seed, WRITERS) for seed in range(50)] == [plan(seed, WRITERS) for seed in range(50)]


def test_seeds_differ():
    assert len({plan(seed, WRITERS).faults for seed in SEEDS}) == len(SEEDS)


def test_every_kind_comes_and_no_other():
    kinds = Counter(fault.kind for seed in SEEDS for fault in plan(seed, WRITERS).faults)
    assert set(kinds) == {*PROCESS, *STORE, *PLACE}


def test_an_episode_has_six_to_eleven_faults_and_an_end():
    for seed in SEEDS:
        faults = plan(seed, WRITERS).faults
        assert 6 <= len(faults) <= 11
        assert any(fault.kind in ENDS for fault in faults)


def test_each_fault_comes_at_a_save_or_at_a_start():
    assert all((fault.save > 0) != (fault.pod > 0) for seed in SEEDS for fault in plan(seed, WRITERS).faults)


def test_an_overwrite_needs_a_writer_that_overwrites():
    for seed in SEEDS:
        made = plan(seed, ["numpy_savez"])
        assert "overwrite in place" not in {fault.kind for fault in made.faults}


def test_what_a_seed_does_depends_little_on_the_writers_that_are_there():
    for seed in SEEDS:
        one, all_of_them = plan(seed, ["joblib_dump"]), plan(seed, WRITERS)
        assert (one.steps, one.count, one.sidecar) == (
            all_of_them.steps,
            all_of_them.count,
            all_of_them.sidecar,
        )


def test_every_writer_is_used():
    assert {plan(seed, WRITERS).writer for seed in range(2000)} == set(WRITERS)


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_prints_its_faults(seed):
    assert all(fault.kind in str(fault) for fault in plan(seed, WRITERS).faults)
