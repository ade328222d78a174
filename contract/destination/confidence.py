"""How sure it is that a commit has the entire checkpoint, and confirmations that settle a doubt. Format 1.

    <lineage>/.podferry/confirmed/<sequence>.json          a doubtful commit is complete after all
    <lineage>/.podferry/confirmed/<sequence>-<rank>.json   the same, for the part of one rank

A commit is *sure* if something proves that its checkpoint is complete, otherwise *doubtful*, with the doubts.
Both have all the bytes that were there. A confirmation overwrites nothing: it is an object of its own.

Commits of format 1 without a confidence were written by podferry 0.1. They are sure, as they were to that
version, unless they have fewer files than the commit before them in their series, shards and other names that
differ only in digits counted: such a one is doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from podferry.contract.destination.commit import Commit, Confidence, Doubt, DoubtKind
from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.destination.series import series_of, without_counterpart
from podferry.contract.versioned_json import document_decoder

FORMAT = 1
CONFIRMED = f"{PRIVATE}/confirmed"
CONFIRMATION = re.compile(r"(\d{12})(?:-(\d+))?\.json")


class Confirmer(StrEnum):
    """Who confirmed."""

    AGENT = "agent"
    PERSON = "person"


class Confirmation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a commit's doubts.

    Attributes:
        format: Version of this document.
        sequence: The commit's number.
        checkpoint: The folder of its data, so that a copied confirmation confirms nothing else.
        by: Who confirmed.
        reason: What proves that the checkpoint is complete, for people.
        at: When, by the confirmer's clock, with time zone.
        rank: The rank whose part is confirmed; None for the entire commit.
    """

    format: int
    sequence: int
    checkpoint: str
    by: Confirmer
    reason: str
    at: datetime
    rank: int | None = None


def confirmation_name(sequence: int, rank: int | None = None) -> str:
    """The name of a confirmation, relative to the lineage."""
    return f"{CONFIRMED}/{sequence:012d}{'' if rank is None else f'-{rank}'}.json"


def confirmed_part(name: str) -> tuple[int, int | None] | None:
    """Sequence and rank of a name directly below `CONFIRMED`; None if it is no confirmation."""
    match = CONFIRMATION.fullmatch(name)
    return (int(match[1]), int(match[2]) if match[2] else None) if match else None


def with_confidence(
    commit: Commit, before: Iterable[Commit], confirmed: Collection[tuple[int, int | None]]
) -> Commit:
    """The commit as readers see it: with a confidence, and with the doubts that nobody has settled.

    Args:
        commit: As it was written.
        before: Older commits of its lineage, newest first; only commits without a confidence need them.
        confirmed: `confirmed_part` of the names below `CONFIRMED`.
    """
    if commit.confidence is None:
        return _rate_format_1(commit, before, confirmed)
    open_doubts = tuple(doubt for doubt in commit.doubts if (commit.sequence, doubt.rank) not in confirmed)
    settled = (commit.doubts and not open_doubts) or (commit.sequence, None) in confirmed
    if commit.confidence is Confidence.SURE or settled:
        return msgspec.structs.replace(commit, confidence=Confidence.SURE, doubts=())
    return msgspec.structs.replace(commit, doubts=open_doubts)


def _rate_format_1(
    commit: Commit, before: Iterable[Commit], confirmed: Collection[tuple[int, int | None]]
) -> Commit:
    series = series_of(commit.name)
    previous = next((other for other in before if series_of(other.name) == series), None)
    doubt = _fewer(commit, previous) if previous is not None else None
    if doubt is None or (commit.sequence, None) in confirmed:
        return msgspec.structs.replace(commit, confidence=Confidence.SURE, doubts=())
    return msgspec.structs.replace(commit, confidence=Confidence.DOUBTFUL, doubts=(doubt,))


def _fewer(commit: Commit, previous: Commit) -> Doubt | None:
    fewer = without_counterpart(*([file.name for file in one.files] for one in (previous, commit)))
    return Doubt(DoubtKind.FEWER, f"{fewer[0]} of {previous.name} has no counterpart") if fewer else None


decode_confirmation = document_decoder(Confirmation, FORMAT, checksummed=True)
