"""What a checkpoint inherits that had another name before, such as `last` that becomes `prev`. Pure.

A rename from the name of a checkpoint proves nothing: the trainer puts away what it has, whole or torn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from podferry.contract.destination.commit import Doubt
from podferry.sidecar.checkpoint.detect.candidate import Candidate, candidate_name
from podferry.sidecar.checkpoint.detect.evidence import Seen
from podferry.sidecar.checkpoint.detect.history import Save
from podferry.sidecar.runtime.file_identity import FileIdentity


def inherited(candidate: Candidate, saves: Iterable[Save]) -> tuple[Doubt, ...] | None:
    """The doubts of the save that had these files under another name, none if it was sure; else None."""
    files, found = _identities(candidate), None
    for save in saves:
        if save.candidate.name != candidate.name:
            theirs = _identities(save.candidate)
            if save.is_sure and files == theirs:
                return ()
            if not save.is_sure and files <= theirs:
                found = save.candidate.doubts
    return found


def twins(save: Save, saves: Iterable[Save]) -> list[Save]:
    """The doubtful saves that have inherited a save's doubts: the same files under other names."""
    own = save.candidate
    return [
        one
        for one in saves
        if one.candidate.name != own.name
        and not one.is_sure
        and set(one.candidate.doubts) <= set(own.doubts)
        and _identities(one.candidate) == _identities(own)
    ]


def without_moves_of_checkpoints(seen: Seen, candidate: Candidate, is_known: Callable[[str], bool]) -> Seen:
    """What was seen, without the moves from names of checkpoints.

    Args:
        seen: What the watch has seen of it.
        candidate: The checkpoint, which was not accepted under its former name.
        is_known: Whether a name is that of checkpoints, and not a temporary one.
    """
    put_away = {name for name, former in seen.written_at.items() if is_known(candidate_name(former))}
    whole = candidate.data_files.keys() <= put_away
    return replace(
        seen,
        moved=seen.moved - put_away,
        in_place=seen.in_place | put_away,
        directory_moved=seen.directory_moved and not whole,
        directory_in_place=seen.directory_in_place or whole,
    )


def _identities(candidate: Candidate) -> set[FileIdentity]:
    return set(candidate.data_files.values())
