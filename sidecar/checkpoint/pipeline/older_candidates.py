"""Which candidates are older than a commit: an agent that starts does not upload them behind it."""

from __future__ import annotations

from collections.abc import Iterable

from podferry.contract.destination.commit import Commit, step_of
from podferry.sidecar.checkpoint.detect.candidate import Candidate


def older_than(newest: Commit, present: Iterable[Candidate]) -> list[Candidate]:
    """What was in the directory before this agent and is older than the newest commit.

    Newer is what changed later than that commit's files (or than the commit was made, if they are not
    there), has a later step, or is another version of the same name.
    """
    by_name = {candidate.name: candidate for candidate in present}
    made = newest.created.timestamp()
    if newest.name in by_name:  # what was written between its own write and its commit is newer
        made = min(made, by_name[newest.name].changed_ns / 1e9)

    def is_older(candidate: Candidate) -> bool:
        later = candidate.name == newest.name or (step_of(candidate.name) or 0) > (newest.step or 0)
        return candidate.changed_ns / 1e9 < made and not later

    return [candidate for candidate in by_name.values() if is_older(candidate)]
