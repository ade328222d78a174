import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.manifest import Entry, freeze
from podferry.contract.quantity import parse_bytes
from podferry.contract.tmpfs_cost import KERNEL_BYTES_PER_FILE, PAGE_BYTES
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.fit_check import HOLDER, SizedPlan, fit_problems
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.staging.volume_capacity import Capacity

MIB = 1 << 20
ROOMY = Capacity(volume_bytes=1 << 50)
SIZES = st.lists(st.integers(0, 20_000), max_size=12)


def sized(sizes, capacity=ROOMY, *, kept=(), name="", limit=None, **settings):
    if not isinstance(sizes, dict):
        sizes = {f"{number:04}": size for number, size in enumerate(sizes)}
    manifest = freeze("s3://b/d", [Entry(name, size) for name, size in sizes.items()])
    plan = plan_fetch(manifest, frozenset(kept), PrefetchSettings(**settings))
    return SizedPlan(plan, capacity, name, limit)


def problems(*plans, in_pod=True):
    return fit_problems(plans, in_pod=in_pod)


def only(*plans, in_pod=True):
    (problem,) = problems(*plans, in_pod=in_pod)
    return problem


def test_datasets_that_fit_have_no_problem():
    assert problems(sized({"a": 10 * MIB, "b/c": 0})) == []
    assert problems() == []
    assert problems(sized([MIB]), in_pod=False) == []


def test_a_volume_counts_full_pages_and_not_the_memory_of_the_kernel():
    assert problems(sized([1] * 100, Capacity(volume_bytes=100 * PAGE_BYTES))) == []
    for in_memory in (True, False):
        problem = only(sized([1] * 100, Capacity(100 * PAGE_BYTES - 1, in_memory=in_memory)), in_pod=False)
        assert problem.what == "the dataset is larger than its volume"
        assert problem.measured == "100 files of 100 B need 400.0 KiB in whole pages; 400.0 KiB are free"
        assert "--dataset-path" in problem.remedy


def test_a_limit_that_an_option_sets_names_the_option():
    plan = msgspec.structs.replace(sized([10 * MIB], limit=9 * MIB), size_option="--size")
    problem = only(plan, in_pod=False)
    assert problem.what == "the dataset is larger than its space"
    assert problem.measured == "it takes 10.0 MiB in whole blocks; --size is 9.0 MiB"
    assert problem.remedy == "Give --size 11Mi"
    assert problems(msgspec.structs.replace(plan, size_limit=10 * MIB), in_pod=False) == []


def test_a_holder_keeps_the_whole_dataset_in_its_directory():
    """`podferry cache serve` has neither --dataset-path nor options for a part."""
    capacity = Capacity(volume_bytes=20 * MIB, volume_files=2, memory_bytes=MIB, in_memory=True)
    plan = msgspec.structs.replace(
        sized([10 * MIB] * 3, capacity, limit=40 * MIB), size_option="--size", names=HOLDER
    )
    found = {one.what: one.remedy for one in problems(plan, in_pod=False)}
    assert found["the dataset is larger than its volume"].startswith("Give DIRECTORY a place with 30.")
    assert found["the volume has too few inodes"] == "Pack the small files with `podferry dataset pack`"
    assert "--shard" not in "".join(found.values())
    assert "--dataset-path" not in "".join(found.values())


def test_a_kernel_with_larger_pages_needs_more_of_everything():
    page = 16 * PAGE_BYTES
    fits = Capacity(100 * page, memory_bytes=100 * (page + KERNEL_BYTES_PER_FILE) + 200, page_bytes=page)
    assert problems(sized([1] * 100, fits)) == []
    tight = Capacity(100 * page - 1, memory_bytes=100 * (page + KERNEL_BYTES_PER_FILE) + 199, page_bytes=page)
    assert [problem.what for problem in problems(sized([1] * 100, tight))] == [
        "the dataset is larger than its volume",
        "the dataset is larger than the memory limit",
    ]


def test_the_memory_limit_covers_pages_inodes_and_bytes_in_flight():
    need = 100 * (MIB + KERNEL_BYTES_PER_FILE) + 2 * 32 * MIB
    sizes = [MIB] * 100
    assert problems(sized(sizes, Capacity(1 << 50, memory_bytes=need), buffer_bytes=32 * MIB)) == []
    problem = only(sized(sizes, Capacity(1 << 50, memory_bytes=need - 1), buffer_bytes=32 * MIB))
    assert problem.what == "the dataset is larger than the memory limit"
    assert problem.measured == (
        "100 files of 100.0 MiB need 164.1 MiB with pages, inodes and 64.0 MiB in flight; "
        "the limit leaves 164.1 MiB"
    )
    problem = only(sized([MIB], Capacity(1 << 50, memory_bytes=1)), in_pod=False)
    assert "Raise the memory limit" in problem.remedy


def test_bytes_in_flight_are_bounded_by_the_size():
    assert (
        problems(
            sized([10 * PAGE_BYTES], Capacity(1 << 50, memory_bytes=30 * PAGE_BYTES + KERNEL_BYTES_PER_FILE))
        )
        == []
    )


def test_a_machine_without_memory_differs_from_a_limit():
    problem = only(sized([10 * MIB], Capacity(1 << 50, node_bytes=15 * MIB)))
    assert problem.what == "the dataset is larger than the memory that this machine has left"
    assert "15.0 MiB" in problem.measured
    assert problem.remedy.startswith("Use a node with more memory; or set podferry.io/medium to disk")


def test_directories_take_inodes():
    sizes = {"a/b/c": 1, "a/b/d": 1, "a/e": 1}
    assert problems(sized(sizes, Capacity(1 << 50, volume_files=5))) == []
    problem = only(sized(sizes, Capacity(1 << 50, volume_files=4)))
    assert problem.measured == "3 files in 2 directories; 4 inodes are free"
    assert "podferry dataset pack" in problem.remedy
    assert problems(sized(sizes, Capacity(1 << 50, volume_files=2), kept=["a/b/c"])) == []


def test_an_emptydir_on_disk_is_as_large_as_its_limit():
    disk = Capacity(1 << 50, in_memory=False)
    assert problems(sized([3 * PAGE_BYTES, PAGE_BYTES - 1], disk, limit=4 * PAGE_BYTES)) == []
    problem = only(sized([3 * PAGE_BYTES, PAGE_BYTES + 1], disk, limit=4 * PAGE_BYTES, kept=["0000"]))
    assert problem.what == "the dataset is larger than its volume: the kubelet would evict the pod"
    assert problem.measured == "it takes 20.0 KiB in whole blocks; the volume's sizeLimit is 16.0 KiB"
    assert "medium" not in problem.remedy, "it is on disk already"


def test_datasets_on_one_file_system_share_its_space():
    here, there = Capacity(10 * PAGE_BYTES, device=1), Capacity(10 * PAGE_BYTES, device=2)
    assert problems(sized([6 * PAGE_BYTES], here), sized([6 * PAGE_BYTES], there, name="val")) == []
    problem = only(sized([6 * PAGE_BYTES], here), sized([5 * PAGE_BYTES], here, name="val"))
    assert problem.what == "the datasets together are larger than their volume"
    assert problem.measured == (
        "the unnamed: 1 file of 24.0 KiB, val: 1 file of 20.0 KiB need 44.0 KiB in whole pages; "
        "40.0 KiB are free"
    )
    assert "podferry.io/dataset-size to " in problem.remedy
    assert "podferry.io/dataset-size.val to " in problem.remedy


def test_an_unknown_device_is_not_shared():
    assert (
        problems(
            sized([6 * PAGE_BYTES], Capacity(10 * PAGE_BYTES)),
            sized([6 * PAGE_BYTES], Capacity(10 * PAGE_BYTES)),
        )
        == []
    )


def test_memory_covers_all_datasets_in_memory_and_the_largest_flight():
    first, second = [100 * PAGE_BYTES], [50 * PAGE_BYTES] * 2
    need = 200 * PAGE_BYTES + 3 * KERNEL_BYTES_PER_FILE + 2 * 100 * PAGE_BYTES
    limit = Capacity(1 << 50, memory_bytes=need)
    assert problems(sized(first, limit), sized(second, limit, name="val")) == []
    limit = Capacity(1 << 50, memory_bytes=need - 1, node_bytes=need - 1)
    found = problems(sized(first, limit), sized(second, limit, name="val"))
    assert [problem.what for problem in found] == [
        "the datasets together are larger than the memory limit",
        "the datasets together are larger than the memory that this machine has left",
    ]
    disk = Capacity(1 << 50, in_memory=False)
    assert problems(sized(first, limit), sized(second, disk, name="val")) == []


def test_the_remedy_in_a_pod_is_a_size_that_would_fit():
    sizes = [5 * MIB] * 1000
    problem = only(sized(sizes, Capacity(volume_bytes=MIB)))
    assert problem.remedy == (
        "Set podferry.io/dataset-size to 6Gi; or set podferry.io/medium to disk or auto, "
        "or stage a part with podferry.io/shard or podferry.io/include"
    )
    quantity = re.search(r"dataset-size to (\w+);", problem.remedy)[1]
    assert problems(sized(sizes, Capacity(volume_bytes=parse_bytes(quantity)))) == []


@pytest.mark.parametrize("in_pod", [True, False])
def test_packing_is_suggested_if_pages_and_inodes_are_much_of_the_need(in_pod):
    small = only(sized([100] * 1000, Capacity(volume_bytes=MIB)), in_pod=in_pod)
    assert small.remedy.endswith("or pack the small files with `podferry dataset pack`")
    large = only(sized([5 * MIB], Capacity(volume_bytes=MIB)), in_pod=in_pod)
    assert "pack" not in large.remedy


def test_a_remedy_includes_kept_files():
    """A larger volume and another path hold the complete dataset, not only the missing files."""
    sizes = {"kept": 1000 * MIB, "new": 10 * MIB}
    for in_pod in (True, False):
        problem = only(sized(sizes, Capacity(volume_bytes=MIB), kept={"kept"}), in_pod=in_pod)
        assert "10.0 MiB" in problem.measured
        assert ("1061Mi" in problem.remedy) if in_pod else ("1010.0 MiB" in problem.remedy)


@given(SIZES, SIZES, st.integers(0, 200_000))
def test_accepted_datasets_fit(first, second, free):
    """On a file system that rounds every file up to full pages."""
    capacity = Capacity(free, device=1)
    if not problems(sized(first, capacity), sized(second, capacity, name="b")):
        assert sum(-(-size // PAGE_BYTES) for size in (*first, *second)) * PAGE_BYTES <= free


def test_all_problems_are_reported_at_once():
    none = Capacity(volume_bytes=PAGE_BYTES, volume_files=1, memory_bytes=PAGE_BYTES, node_bytes=PAGE_BYTES)
    assert len(problems(sized({"a/b": 100 * MIB, "c": MIB}, none))) == 4
