from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.destination.output_record import OutputRecord, decode_record, record_name
from podferry.contract.errors import Corrupt, FormatTooNew, Problem
from podferry.contract.versioned_json import encode_document

GOLDEN = Path(__file__).parents[1] / "golden" / "outputs-v1.json"
RECORD = OutputRecord(
    format=1,
    lineage="team.job.digits",
    writer="0" * 32,
    run="run-1",
    rank=2,
    files=7,
    bytes=2**40,
    ended_at=datetime(2026, 3, 1, 12, 30, 5, 250_000, UTC),
    exit_code=1,
    problems=(Problem("symbolic links are not uploaded", "'latest'", "Write a copy"),),
)


def test_the_first_format_stays_readable() -> None:
    data = GOLDEN.read_bytes()
    assert decode_record(data, "golden") == RECORD
    assert encode_document(RECORD) == data


def test_a_later_format_is_refused_by_name() -> None:
    with pytest.raises(FormatTooNew, match="format 2"):
        decode_record(b'{"format": 2}', "x")


@given(st.integers(0, len(GOLDEN.read_bytes()) - 2))
def test_a_truncated_record_is_corrupt(length: int) -> None:
    with pytest.raises(Corrupt):
        decode_record(GOLDEN.read_bytes()[:length], "x")


@pytest.mark.parametrize(
    ("world", "rank", "name"),
    [
        (1, None, "outputs.json"),
        (1, 0, "outputs.json"),
        (1, 3, "outputs-3.json"),
        (4, 0, "outputs-0.json"),
        (4, 3, "outputs-3.json"),
        (4, None, "outputs.json"),
    ],
)
def test_pods_that_train_together_have_a_record_each(world: int, rank: int | None, name: str) -> None:
    assert record_name(world, rank) == f".podferry/{name}"
