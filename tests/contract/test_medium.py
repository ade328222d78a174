"""Where `medium: auto` puts datasets."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.medium import resolve_medium
from podferry.contract.memory_sum import memory_sum
from podferry.contract.spec import DatasetSpec, FerrySpec, Medium
from podferry.contract.tmpfs_cost import MIB

GIB = 1024**3
AGENT = memory_sum(FerrySpec((DatasetSpec("s3://b/d", size=MIB, medium=Medium.DISK),))).sidecar
DATASETS = st.lists(
    st.builds(
        DatasetSpec,
        st.just("s3://b/d"),
        size=st.integers(1, 40 * GIB),
        name=st.sampled_from(["", "a", "b", "c", "d"]),
        medium=st.sampled_from(Medium),
    ),
    max_size=5,
    unique_by=lambda dataset: dataset.name,
).map(tuple)


def dataset(name: str, size: int, medium: Medium = Medium.AUTO) -> DatasetSpec:
    return DatasetSpec("s3://b/d", size=size, name=name, medium=medium)


@pytest.mark.parametrize(
    ("bound", "on_disk"),
    [(64 * GIB, ""), (20 * GIB, "b"), (5 * GIB, "ab"), (3 * GIB, "abc"), (MIB, "abc")],
)
def test_the_largest_go_to_disk_until_the_rest_fits(bound: int, on_disk: str) -> None:
    spec = FerrySpec((dataset("a", 8 * GIB), dataset("b", 30 * GIB), dataset("c", 3 * GIB)))
    found, reasons = resolve_medium(spec, bound)
    assert "".join(one.name for one in found.datasets if one.medium is Medium.DISK) == on_disk
    assert [one.partition(": ")[2].partition(":")[0] for one in reasons] == [
        "disk" if name in on_disk else "memory" for name in "abc"
    ]


def test_the_reason_has_its_numbers() -> None:
    spec = FerrySpec((dataset("images", 80 * GIB), dataset("labels", GIB)))
    assert resolve_medium(spec, 64 * GIB).reasons == (
        "podferry.io/medium.images: disk: in memory, the sidecar needs 83.2 GiB; 64.0 GiB are allowed",
        "podferry.io/medium.labels: memory: the sidecar needs 1.9 GiB; 64.0 GiB are allowed",
    )


@given(DATASETS, st.integers(0, 100 * GIB))
def test_every_auto_is_resolved_and_nothing_else_changes(
    datasets: tuple[DatasetSpec, ...], bound: int
) -> None:
    spec = FerrySpec(datasets)
    found, reasons = resolve_medium(spec, bound)
    assert len(reasons) == sum(one.medium is Medium.AUTO for one in datasets)
    for before, after in zip(datasets, found.datasets, strict=True):
        assert after.medium is not Medium.AUTO
        assert before.medium is Medium.AUTO or after == before
        assert msgspec.structs.replace(after, medium=before.medium) == before
    if any(
        before.medium is Medium.AUTO and after.medium is Medium.MEMORY
        for before, after in zip(datasets, found.datasets, strict=True)
    ):
        assert memory_sum(found).sidecar <= bound


def test_an_unknown_size_is_left_to_the_sum() -> None:
    spec = FerrySpec((DatasetSpec("s3://b/d", medium=Medium.AUTO),))
    assert resolve_medium(spec, GIB) == (spec, ())
