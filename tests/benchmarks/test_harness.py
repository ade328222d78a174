import sys

import pytest
from harness import LIMIT, OURS, Command, Contest, compare, interval


def prints(*seconds: str) -> Command:
    """A program that prints a duration."""
    return Command([sys.executable, "-c", f"print({seconds[0]})"], prints_seconds=True)


def quiet(text: str) -> None:
    assert "warm-up" not in text


def test_a_ratio_is_the_peers_time_over_ours() -> None:
    contest = Contest("case", prints("2"), {"peer": prints("6")}, prints("1"), least={"peer": 4.0})
    (row,) = compare(contest, 1, quiet, warm_up=False)
    assert (row.ratio, row.low, row.high, row.limit_s, row.least) == (3.0, 3.0, 3.0, 1.0, 4.0)


def test_the_limit_has_a_row_if_there_is_a_goal() -> None:
    contest = Contest("case", prints("2"), {"peer": prints("6")}, prints("1"), least={LIMIT: 0.5})
    rows = compare(contest, 1, quiet, warm_up=False)
    assert [(row.peer, row.ratio, row.least) for row in rows] == [("peer", 3.0, None), (LIMIT, 0.5, 0.5)]


def test_the_start_is_subtracted_within_a_round() -> None:
    starts = {OURS: prints("0.5"), "peer": prints("1"), LIMIT: prints("0")}
    contest = Contest("case", prints("2.5"), {"peer": prints("5")}, prints("1"), {"peer": 1.0}, starts=starts)
    whole, rest = compare(contest, 1, quiet, warm_up=False)
    assert (whole.ratio, whole.ours_s, whole.least) == (2.0, 2.5, 1.0)
    assert (rest.case, rest.peer) == ("case, without the start", "peer")
    assert (rest.ratio, rest.ours_s, rest.peer_s, rest.least) == (2.0, 2.0, 4.0, 1.0)


def test_a_start_that_took_longer_than_the_whole_leaves_a_time() -> None:
    starts = {name: prints("3") for name in (OURS, "peer", LIMIT)}
    contest = Contest("case", prints("2"), {"peer": prints("6")}, prints("1"), starts=starts)
    _, rest = compare(contest, 1, quiet, warm_up=False)
    assert (rest.ours_s, rest.peer_s) == (0.001, 3.0)


def test_a_failure_shows_its_output() -> None:
    broken = Command([sys.executable, "-c", "import sys; sys.exit('no such bucket')"])
    with pytest.raises(RuntimeError, match="no such bucket"):
        compare(Contest("case", broken, {}, broken), 1, quiet)


def test_an_interval_holds_the_median_and_leaves_outliers_out() -> None:
    low, high = interval([1.0] * 9 + [100.0])
    assert low == high == 1.0
    low, high = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert low < 3.0 < high
