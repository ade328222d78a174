"""Whether a trainer resumed from what it had to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from faults.ledger import Good, Violation


def resumed(sure: Sequence[Good], before: Good | None, event: Mapping[str, Any]) -> list[Violation]:
    """What is wrong with what a trainer resumed from.

    Args:
        sure: The sure commits that are whole.
        before: The newest of them before its pod started.
        event: The trainer's own note.
    """
    if event["event"] == "broken":
        what = f"restored, and not what was written: {event['restored']}: {event['why']}"
        return [Violation("wrong", what)]
    if before is None and event["step"] is None:
        return []
    oldest = before.sequence if before is not None else 0
    if event["step"] in {good.step for good in sure if good.sequence >= oldest}:
        return []
    if before is None:
        return [Violation("wrong", f"resumed from step {event['step']}, which is not sure")]
    what = f"commit {before.sequence} of step {before.step} was sure and whole"
    return [Violation("lost", f"resumed from step {event['step']}, and {what}")]
