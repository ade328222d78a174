import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import Refused
from podferry.contract.manifest import Entry, freeze
from podferry.contract.memory import FILE, PAGE
from podferry.contract.quantity import parse_bytes
from podferry.sidecar.capacity import Capacity
from podferry.sidecar.plan import fit_problems, plan_prefetch, refuse_unless_fits
from podferry.sidecar.settings import PrefetchSettings

MIB = 1 << 20
ROOMY = Capacity(volume_bytes=1 << 50)
SIZES = st.dictionaries(st.from_regex(r"[a-c]{1,3}", fullmatch=True), st.integers(0, 300), max_size=12)


def manifest(sizes):
    return freeze("s3://b/d", [Entry(name, size) for name, size in sizes.items()])


def planned(sizes, kept=(), **settings):
    return plan_prefetch(manifest(sizes), frozenset(kept), PrefetchSettings(**settings))


@given(SIZES, st.integers(1, 100), st.data())
def test_the_pieces_tile_each_file_that_is_missing(sizes, range_bytes, data):
    kept = data.draw(st.sets(st.sampled_from(sorted(sizes)))) if sizes else set()
    plan = planned(sizes, kept, range_bytes=range_bytes)
    ends = dict.fromkeys(range(len(plan.files)), 0)
    counts = dict.fromkeys(ends, 0)
    for piece in plan.requests():
        assert piece.start == ends[piece.file]
        assert piece.length <= range_bytes
        assert piece.length > 0 or plan.files[piece.file].size == 0
        ends[piece.file] += piece.length
        counts[piece.file] += 1
    assert {plan.files[index].name: end for index, end in ends.items()} == {
        name: size for name, size in sizes.items() if name not in kept
    }
    assert tuple(counts.values()) == plan.pieces
    assert {entry.name for entry in plan.kept} == kept


@given(SIZES)
def test_the_largest_come_first_and_the_order_is_settled(sizes):
    names = [(entry.size, entry.name) for entry in planned(sizes).files]
    assert names == sorted(names, key=lambda pair: (-pair[0], pair[1]))


def test_what_fits_has_no_problem():
    plan = planned({"a": 10 * MIB, "b/c": 0})
    assert fit_problems(plan, ROOMY, in_pod=True) == []
    refuse_unless_fits(plan, ROOMY, in_pod=False)


def test_a_volume_counts_whole_pages_and_not_the_memory_of_the_kernel():
    plan = planned({f"{i:03}": 1 for i in range(100)})
    assert fit_problems(plan, Capacity(volume_bytes=100 * PAGE), in_pod=False) == []
    for in_memory in (True, False):
        (problem,) = fit_problems(plan, Capacity(100 * PAGE - 1, in_memory=in_memory), in_pod=False)
        assert problem.what == "the dataset is larger than its volume"
        assert problem.measured == "100 files of 100 B need 400.0 KiB in whole pages; 400.0 KiB are free"
        assert "--dataset-path" in problem.remedy


def test_the_memory_limit_must_hold_pages_inodes_and_what_is_in_flight():
    plan = planned({f"{i:03}": MIB for i in range(100)}, buffer_bytes=32 * MIB)
    need = 100 * (MIB + FILE) + 2 * 32 * MIB
    assert fit_problems(plan, Capacity(1 << 50, memory_bytes=need), in_pod=True) == []
    (problem,) = fit_problems(plan, Capacity(1 << 50, memory_bytes=need - 1), in_pod=True)
    assert problem.what == "the dataset is larger than the memory limit"
    assert problem.measured == (
        "100 files of 100.0 MiB need 164.1 MiB with pages, inodes and 64.0 MiB in flight; "
        "the limit leaves 164.1 MiB"
    )
    (problem,) = fit_problems(plan, Capacity(1 << 50, memory_bytes=1), in_pod=False)
    assert "Raise the memory limit" in problem.remedy


def test_no_more_is_in_flight_than_there_is_to_fetch():
    plan = planned({"a": 10 * PAGE})
    assert fit_problems(plan, Capacity(1 << 50, memory_bytes=30 * PAGE + FILE), in_pod=True) == []


def test_a_machine_without_memory_is_told_apart_from_a_limit():
    plan = planned({"a": 10 * MIB})
    (problem,) = fit_problems(plan, Capacity(1 << 50, node_bytes=15 * MIB), in_pod=True)
    assert problem.what == "the dataset is larger than the memory that this machine has left"
    assert "15.0 MiB" in problem.measured


def test_the_remedy_in_a_pod_is_a_size_that_would_fit():
    sizes = {f"{i:03}": 5 * MIB for i in range(1000)}
    (problem,) = fit_problems(planned(sizes), Capacity(volume_bytes=MIB), in_pod=True)
    quantity = problem.remedy.split(" to ")[1].split(",")[0]
    assert "podferry.io/dataset-size" in problem.remedy
    assert fit_problems(planned(sizes), Capacity(volume_bytes=parse_bytes(quantity)), in_pod=True) == []


def test_a_remedy_counts_what_is_kept_too():
    """Both a larger volume and another path hold the whole dataset, not only what was missing."""
    sizes = {"kept": 1000 * MIB, "new": 10 * MIB}
    for in_pod in (True, False):
        (problem,) = fit_problems(planned(sizes, {"kept"}), Capacity(volume_bytes=MIB), in_pod=in_pod)
        assert "10.0 MiB" in problem.measured
        assert ("1061Mi" in problem.remedy) if in_pod else ("1010.0 MiB" in problem.remedy)


def test_directories_take_inodes():
    plan = planned({"a/b/c": 1, "a/b/d": 1, "a/e": 1})
    assert fit_problems(plan, Capacity(1 << 50, volume_files=5), in_pod=False) == []
    (problem,) = fit_problems(plan, Capacity(1 << 50, volume_files=4), in_pod=False)
    assert problem.measured == "3 files in 2 directories; 4 inodes are free"
    kept = planned({"a/b/c": 1, "a/b/d": 1, "a/e": 1}, {"a/b/c"})
    assert fit_problems(kept, Capacity(1 << 50, volume_files=2), in_pod=False) == []


def test_all_problems_are_told_at_once():
    plan = planned({"a/b": 100 * MIB, "c": MIB})
    none = Capacity(volume_bytes=PAGE, volume_files=1, memory_bytes=PAGE, node_bytes=PAGE)
    with pytest.raises(Refused) as caught:
        refuse_unless_fits(plan, none, in_pod=True)
    assert len(caught.value.problems) == 4
