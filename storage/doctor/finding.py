"""What one check has found."""

from __future__ import annotations

import enum

import msgspec

from podferry.contract.errors import FerryError, Problem


class Outcome(enum.Enum):
    """How a check ended."""

    OK = "ok"
    LIMITED = "limited"
    """It works, with a limit that the user has to know."""
    FAILED = "failed"
    SKIPPED = "skipped"


class Finding(msgspec.Struct, frozen=True):
    """The result of a check.

    Attributes:
        check: Its name: `TLS`, `exclusive commit`, …
        outcome: How it ended.
        measured: What was seen.
        remedy: What to do; empty if nothing has to be done.
    """

    check: str
    outcome: Outcome
    measured: str
    remedy: str = ""


def ok(check: str, measured: str) -> Finding:
    """The finding of a check that succeeded."""
    return Finding(check, Outcome.OK, measured)


def failed(check: str, error: FerryError) -> Finding:
    """The finding of a check that raised; the errors of one check stay together."""
    texts = [_text(problem) for problem in error.problems]
    remedies = dict.fromkeys(problem.remedy for problem in error.problems if problem.remedy)
    return Finding(check, Outcome.FAILED, "; ".join(texts), ". ".join(remedies))


def skipped(check: str, reason: str) -> Finding:
    """The finding of a check that was not tried."""
    return Finding(check, Outcome.SKIPPED, reason)


def _text(problem: Problem) -> str:
    return f"{problem.what} ({problem.measured})" if problem.measured else problem.what
