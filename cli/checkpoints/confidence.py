"""Shows how sure it is that a checkpoint is complete: in tables, in lines, and as a problem at the end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from podferry.contract.destination.commit import Commit, Confidence, Doubt
from podferry.contract.destination.confidence import (
    Confirmation,
    Confirmer,
    confirmation_name,
    decode_confirmation,
)
from podferry.contract.errors import FerryError, Problem
from podferry.contract.uri import Uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.runtime.colours import coloured

YELLOW = (Confidence.DOUBTFUL.value,)
"""Cells that are yellow on a terminal."""
ANSWERS = "Confirm it if you know that it is complete: "


def confidence_of(commit: Commit | None) -> str:
    """The confidence of a commit for a table, `-` without a commit; of a sure one also whether it is late."""
    if commit is None or commit.confidence is None:
        return "-"
    return f"{commit.confidence.value}, late" if commit.late and commit.is_sure else commit.confidence.value


def describe_doubt(doubt: Doubt) -> str:
    """A doubt in one line."""
    rank = "" if doubt.rank is None else f"rank {doubt.rank}: "
    return f"{doubt.kind.value}: {rank}{doubt.reason}"


def doubt_problem(commit: Commit, destination: Uri) -> Problem:
    """A doubtful checkpoint as a problem; the remedy is the command that confirms it."""
    doubts = "; ".join(map(describe_doubt, commit.doubts))
    command = f"podferry checkpoints confirm {destination} {commit.lineage} {commit.name}"
    return Problem(
        f"the newest checkpoint of {commit.lineage}, {commit.name}, is doubtful", doubts, ANSWERS + command
    )


async def read_confirmations(reader: CommitReader, commit: Commit) -> list[Confirmation]:
    """The confirmations of this very commit, sorted by rank; unreadable ones count for nothing."""
    parts = [part for part in await reader.confirmed() if part[0] == commit.sequence]
    found = await asyncio.gather(*(_read(reader, *part) for part in parts))
    own = [one for one in found if one is not None and one.checkpoint == commit.checkpoint]
    return sorted(own, key=lambda one: -1 if one.rank is None else one.rank)


async def _read(reader: CommitReader, sequence: int, rank: int | None) -> Confirmation | None:
    try:
        return await reader.store.find(confirmation_name(sequence, rank), decode_confirmation)
    except FerryError:
        return None


def confidence_lines(commit: Commit, confirmations: Sequence[Confirmation]) -> list[tuple[str, str]]:
    """The confidence with the doubts that are left, and who has settled others: names and values."""
    text = confidence_of(commit)
    return [
        ("confidence", coloured(text, "yellow", sys.stdout) if text in YELLOW else text),
        *(("doubt", describe_doubt(doubt)) for doubt in commit.doubts),
        *(("confirmed", _describe(one)) for one in confirmations),
    ]


def _describe(one: Confirmation) -> str:
    part = "" if one.rank is None else f"rank {one.rank}, "
    who = "a person" if one.by is Confirmer.PERSON else "an agent"
    return f"{part}by {who}, {one.at.isoformat(timespec='seconds')}: {one.reason}"
