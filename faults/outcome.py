"""What became of an episode, and its record."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from faults.known import KNOWN
from faults.ledger import Violation
from faults.plan import Plan


@dataclass(slots=True)
class Outcome:
    """What became of an episode.

    Attributes:
        plan: What was to happen.
        fired: The faults that did, by kind.
        violations: What was broken.
        codes: The exit codes of its pods.
        commits: How many were found whole.
        unproven: How many of them are doubtful at the end.
        torn: How many were found incomplete, and are doubtful.
        passed_over: Whole and doubtful ones that were newer than what was restored, over all restores.
        restores: How many pods resumed from one.
        seconds: It took.
    """

    plan: Plan
    fired: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    commits: int = 0
    unproven: int = 0
    torn: int = 0
    passed_over: int = 0
    restores: int = 0
    seconds: float = 0.0

    def record(self, store: str) -> dict[str, object]:
        """As JSON's types."""
        return {
            "seed": self.plan.seed,
            "writer": self.plan.writer,
            "real": KNOWN[self.plan.writer].real,
            "sidecar": self.plan.sidecar,
            "store": store,
            "fired": dict(self.fired),
            "violations": [asdict(violation) for violation in self.violations],
            "codes": self.codes,
            "commits": self.commits,
            "unproven": self.unproven,
            "torn": self.torn,
            "passed_over": self.passed_over,
            "restores": self.restores,
            "seconds": round(self.seconds, 1),
            "plan": [str(fault) for fault in self.plan.faults],
        }


def keep(outcome: Outcome, store: str, file: Path) -> None:
    """Write an outcome as a whole: what is there is done."""
    partial = file.with_suffix(".tmp")
    partial.write_text(json.dumps(outcome.record(store), indent=1))
    partial.replace(file)
