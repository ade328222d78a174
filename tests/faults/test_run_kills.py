"""Kills of each process of `podferry run`; `make run-kills` plays all cells."""

import pytest

from faults.run_kills import Cell, cells, line
from faults.store import served


def cell(code=0, saved=("a", "b"), durable=("a", "b"), named=(), rescued=("a", "b")):
    return Cell("worker", "training", code, saved, durable, named, False, rescued)


@pytest.mark.parametrize(
    ("made", "silent"),
    [
        (cell(), ()),
        (cell(-9, durable=("a",)), ("b",)),
        (cell(-9, durable=("a",), named=("b",)), ()),
        (cell(74, durable=("a",), named=("b",), rescued=("a",)), ("b",)),
        (cell(0, durable=("a",), named=("b",)), ("b",)),
        (cell(76, durable=("a",), named=("b",)), ("b",)),
    ],
)
def test_what_is_lost_in_silence(made, silent):
    assert made.silent == silent
    assert ("LOST" in line(made)) is bool(silent)


def test_nothing_is_lost_in_silence():
    wanted = [("both", "the end"), ("command", "training"), ("all three", "training")]
    with served("moto") as store:
        done = list(cells(store, wanted))
    assert [one.silent for one in done] == [()] * 3
    assert [one.code for one in done] == [0, -9, -9]
    assert [one.left for one in done] == [False, False, True]
    assert done[1].durable == ("epoch-1", "epoch-9"), "the trainer saved after its command had been killed"
    assert done[2].named == done[2].rescued == ("epoch-1", "epoch-9")
