import pytest
from catching import FAR, break_even, ends_after


@pytest.mark.parametrize(
    ("ours", "theirs", "epoch"),
    [
        ([10, 11, 12], [12, 24, 36], 1),  # never behind
        ([10, 11, 12], [6, 12, 18], 2),  # within what was measured
        ([30, 31, 32], [4, 8, 12], 10),  # 32 + 7 <= 12 + 28
        ([10, 14, 18], [6, 10, 14], None),  # as quick as ours, and ahead
    ],
)
def test_break_even(ours: list[float], theirs: list[float], epoch: int | None) -> None:
    assert break_even(ours, theirs) == epoch


def test_the_last_epoch_counts_for_those_that_were_not_measured() -> None:
    assert ends_after([5.0, 7.0], 4) == 11.0
    assert ends_after([5.0], 3) == 15.0


def test_it_ends_when_nothing_waits_any_more() -> None:
    assert break_even([FAR * 2.0, FAR * 2.0 + 1], [1.0, 2.5]) is None
