import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.cli.dataset.size_histogram import (
    BUCKET_BOUNDS,
    Bucket,
    recommended_size,
    size_histogram,
    size_statistics,
)
from podferry.contract.quantity import parse_bytes
from podferry.contract.tmpfs_cost import charged_bytes

SIZES = st.lists(st.integers(0, 2**34), max_size=30)


def test_a_bound_is_in_the_bucket_that_it_ends():
    sizes = [0, 4096, 4097, BUCKET_BOUNDS[-1], BUCKET_BOUNDS[-1] + 1]
    assert size_histogram(sizes) == [
        Bucket("up to 4.0 KiB", 2, 4096),
        Bucket("up to 64.0 KiB", 1, 4097),
        Bucket("up to 4.0 GiB", 1, BUCKET_BOUNDS[-1]),
        Bucket("above 4.0 GiB", 1, BUCKET_BOUNDS[-1] + 1),
    ]
    assert size_histogram([]) == []


@given(SIZES)
def test_every_file_is_in_one_bucket(sizes):
    buckets = size_histogram(sizes)
    assert sum(bucket.files for bucket in buckets) == len(sizes)
    assert sum(bucket.bytes for bucket in buckets) == sum(sizes)
    assert all(bucket.files for bucket in buckets)


@pytest.mark.parametrize(
    ("sizes", "expected"), [([3], (3, 3, 3)), ([9, 1, 5, 2], (1, 2, 9)), ([7, 1, 7], (1, 7, 7))]
)
def test_the_median_is_the_size_of_a_file(sizes, expected):
    assert tuple(size_statistics(sizes).values()) == expected


@given(SIZES)
def test_the_recommended_size_holds_the_files_with_slack(sizes):
    size = parse_bytes(recommended_size(sizes))
    assert size >= max(1.05 * charged_bytes(sizes), charged_bytes(sizes) + (16 << 20))
