from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import InvalidSpec
from podferry.contract.quantity import (
    FACTORS,
    MAX_BYTES,
    count_of,
    exact_quantity,
    format_bytes,
    parse_bytes,
    parse_quantity,
    parse_seconds,
    parse_timeout,
    quantity_at_least,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("14Gi", "15032385536"),
        ("500m", "0.5"),
        ("1e3", "1000"),
        ("1E", "1000000000000000000"),
        (".5Ki", "512"),
        (" 2M ", "2000000"),
        ("-1", "-1"),
    ],
)
def test_a_quantity_is_exact(text: str, value: str) -> None:
    assert parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "Gi", "14 Gi", "14gi", "14KiB", "1.2.3", "abc", "0x10"])
def test_invalid_quantities_are_refused(text: str) -> None:
    with pytest.raises(InvalidSpec, match="not a quantity"):
        parse_quantity(text)


@given(st.integers(1, 2**70), st.sampled_from([suffix for suffix in FACTORS if suffix != "m"]))
def test_whole_quantities_are_their_bytes(number: int, suffix: str) -> None:
    count = number * int(FACTORS[suffix])
    if count <= MAX_BYTES:
        assert parse_bytes(f"{number}{suffix}") == count
    else:
        with pytest.raises(InvalidSpec, match="exceeds the largest Kubernetes quantity"):
            parse_bytes(f"{number}{suffix}")


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "9" * 5000])
def test_no_text_costs_more_than_it_is_worth(text: str) -> None:
    with pytest.raises(InvalidSpec):
        parse_bytes(text)


@pytest.mark.parametrize(("text", "count"), [("1m", 1), ("1500m", 2), ("0.1Ki", 103)])
def test_parts_of_a_byte_round_up(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["0", "-1Gi", "0Mi"])
def test_a_size_is_above_zero(text: str) -> None:
    with pytest.raises(InvalidSpec, match="above zero"):
        parse_bytes(text)


@given(st.integers(1, 2**55))
def test_a_proposed_quantity_holds_the_bytes_and_little_more(count: int) -> None:
    proposed = parse_bytes(quantity_at_least(count))
    assert count <= proposed <= max(count * 1.25 + 1, count + 1024)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (14_173_392_077, "13.2 GiB"),
        (1024**2 - 1, "1.0 MiB"),
        (2**60, "1024.0 PiB"),
    ],
)
def test_bytes_for_people(count: int, shown: str) -> None:
    assert format_bytes(count) == shown


@given(st.integers(0, 2**60))
def test_shown_bytes_are_near(count: int) -> None:
    number, unit = format_bytes(count).split()
    factor = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit)
    assert float(number) * factor == pytest.approx(count, rel=0.06)


@given(st.integers(0, 99), st.integers(0, 59), st.integers(1, 59))
def test_durations(hours: int, minutes: int, seconds: int) -> None:
    total = hours * 3600 + minutes * 60 + seconds
    assert parse_seconds(f"{hours}h{minutes}m{seconds}s") == total
    assert parse_seconds(str(total)) == total


@pytest.mark.parametrize("text", ["", "0", "0s", "-5", "5d", "1m1h", "ten", "9" * 30])
def test_invalid_durations_are_refused(text: str) -> None:
    with pytest.raises(InvalidSpec, match="duration above zero"):
        parse_seconds(text)


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("600", 600.0), (" 0.5 ", 0.5), ("1e3", 1000.0)])
def test_timeouts(text, seconds):
    assert parse_timeout(text) == seconds


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1", "-0.1", "1e300", "10m", ""])
def test_what_no_timer_takes_is_refused(text):
    with pytest.raises(InvalidSpec, match="not a number of seconds"):
        parse_timeout(text)


@pytest.mark.parametrize(("number", "text"), [(0, "0 files"), (1, "1 file"), (1797, "1,797 files")])
def test_a_number_has_its_noun(number, text):
    assert count_of(number, "file") == text


@pytest.mark.parametrize(
    ("count", "text"), [(1 << 30, "1024Mi"), (3 << 20, "3Mi"), ((1 << 20) + 1, "1048577")]
)
def test_quantities_are_exact(count: int, text: str) -> None:
    assert exact_quantity(count) == text
