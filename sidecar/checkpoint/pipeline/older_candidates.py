"""Which candidates are older than a commit, by their last write and their step. Pure.

An agent that starts does not upload them behind it. One that finds them later, such as an earlier checkpoint
under another name, commits them as late ones: no older checkpoint becomes the newest.
"""

from __future__ import annotations

from collections.abc import Iterable

from podferry.contract.destination.commit import Commit, step_of
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import DURABLE, WAITING, CheckpointVersion


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


def is_late(version: CheckpointVersion, others: Iterable[CheckpointVersion]) -> bool:
    """Whether a version that gets the next number is older than one that has a lower number, or will have.

    It is if that one has another name and the same kind, was written later, and has no earlier step: a plot
    makes no checkpoint late, nor does a `last.pt` that was saved while `step-100` was copied into place.
    """
    candidate = version.candidate
    return not version.rewritten and any(
        _written_ns(candidate) < _written_ns(other.candidate)
        and (step_of(version.name) or 0) <= (step_of(other.name) or 0)
        and candidate.kind is other.candidate.kind
        for other in others
        if other.name != version.name and _goes_before(other, version)
    )


def _goes_before(other: CheckpointVersion, version: CheckpointVersion) -> bool:
    return other.state in DURABLE or (other.state in WAITING and other.number < version.number)


def _written_ns(candidate: Candidate) -> int:
    """The last write to its data: pointers are written for every checkpoint that they name."""
    return max(identity.mtime_ns for identity in candidate.data_files.values())
