"""Findings on a page."""

from __future__ import annotations

from podferry.components.diagnosis.why.explain import NOT_A_CLUSTER, page, with_reasons
from podferry.components.diagnosis.why.findings import Finding
from podferry.contract.errors import Problem

FAILED = Finding("train", "pod-1", (Problem("main: failed", "exit code 1", "Look"),), "main")
LOG = """Traceback (most recent call last):
  File "x.py", line 1, in <module>
podferry.trainer.ferry.NotDurableError: not durable: epoch-3 (after 600 s). See the reasons.
error: the store refuses (403).
podferry: using the pod's agent (http://127.0.0.1:8471)
ValueError: shapes differ"""


def test_the_reasons_that_podferry_logged_come_first() -> None:
    found = with_reasons(FAILED, LOG)
    assert found.problems == (
        Problem("not durable: epoch-3", "after 600 s", "See the reasons"),
        Problem("the store refuses", "403"),
        *FAILED.problems,
    )
    assert with_reasons(FAILED, "") == FAILED


def test_each_problem_is_a_row() -> None:
    found = page((FAILED,), (), (), 3)
    (table,) = found.tables
    assert table.columns == ("task", "what", "measured", "remedy")
    assert table.rows == (("train", "main: failed", "exit code 1", "Look"),)
    assert found.verdict == "1 of the run's tasks failed: train"
    assert found.good is False


def test_nothing_failed() -> None:
    found = page((), (), (), 3)
    assert (found.verdict, found.good, found.tables) == ("Nothing failed: 3 pods of the run", True, ())


def test_what_is_unknown_is_not_called_good() -> None:
    found = page((), (), (NOT_A_CLUSTER,), 0)
    assert found.good is None
    assert found.verdict.startswith("Nothing is known")
    assert "on a cluster only" in found.notes[0]
