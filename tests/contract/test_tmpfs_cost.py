from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.tmpfs_cost import (
    KERNEL_BYTES_PER_FILE,
    PAGE_BYTES,
    allocated_bytes,
    charged_bytes,
    max_allocated_bytes,
)

MIB = 1024**2


def test_pages_and_kernel_memory_of_each_file_count() -> None:
    assert charged_bytes([]) == 0
    assert charged_bytes([0]) == KERNEL_BYTES_PER_FILE
    assert charged_bytes([1, PAGE_BYTES, PAGE_BYTES + 1]) == 4 * PAGE_BYTES + 3 * KERNEL_BYTES_PER_FILE


def test_the_measured_case_is_covered_but_not_by_much() -> None:
    # 100,000 files of 1 KiB were charged 482 MiB.
    assert 482 * MIB < charged_bytes([1024] * 100_000) < 490 * MIB


@given(st.lists(st.integers(0, 2**40), max_size=20))
def test_totals_alone_bound_the_exact_sum(sizes: list[int]) -> None:
    exact = allocated_bytes(sizes)
    bound = max_allocated_bytes(sum(sizes), len(sizes))
    assert exact <= bound <= exact + len(sizes) * PAGE_BYTES
