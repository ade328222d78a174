"""What several pods that write one checkpoint tell each other. Format 1.

    <lineage>/.podferry/ranks/<rank>-<writer>         one life of a pod: its `GangMember`
    <lineage>/.podferry/ranks/<rank>.<n>-<writer>     the same once its trainer has begun anew, n from 2
    <lineage>/.podferry/parts/<name>/<rank>.json      a rank's share of a checkpoint: its `RankPart`

All names below `ranks/` together are the *generation*. No name comes back once it has gone, and no life takes
its last one away, so a generation that has passed never returns.
`podferry.sidecar.checkpoint.gang.coordinator` says what it is for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby

import msgspec

from podferry.contract.commit import NUMBER, PRIVATE, CommittedFile, checkpoint_folder
from podferry.contract.errors import Corrupt
from podferry.contract.file_names import clashes, name_problem
from podferry.contract.versioned_json import decode_checksummed, encode_checksummed

FORMAT = 1
RANKS = f"{PRIVATE}/ranks"
PARTS = f"{PRIVATE}/parts"
EPOCH_DIGITS = 32
"""Hexadecimal digits that name a generation."""


class MembershipView(msgspec.Struct, frozen=True):
    """A generation as one agent saw it.

    Attributes:
        time: When it had been listed for the first time: seconds since the epoch, by the agent's clock.
        generation: `epoch_of` the names.
    """

    time: float
    generation: str


class GangMember(msgspec.Struct, frozen=True):
    """One life of an agent's pod in a lineage; its name says most of it.

    Attributes:
        format: Version of this document.
        writer: The agent, as in its commits.
        created: When this was written first.
        base: The newest commit's sequence then, 0 without one: what came later came in this life.
        before: The names that were there when the life began.
        views: The generations that it has seen, oldest first: they outlive a worker's restart.
    """

    format: int
    writer: str
    created: datetime
    base: int
    before: tuple[str, ...] = ()
    views: tuple[MembershipView, ...] = ()


class RankPart(msgspec.Struct, frozen=True):
    """One rank's share of a checkpoint, all of it sent.

    Attributes:
        format: Version of this document.
        lineage: Which attempts belong together.
        name: What the trainers call the checkpoint.
        step: The step that the name tells, None where there is none: such parts are never joined.
        rank: Whose share.
        world: Of how many.
        writer: That rank's agent.
        member: Its name below `ranks/` when it wrote this.
        generation: The one that its agent had seen before the files were last changed; empty where it had
            seen none.
        base: The newest commit's sequence when the attempt began: later ones are of the same attempt, or of
            one that it has replaced.
        folder: Where the files lie that no other checkpoint has, relative to the lineage.
        files: Sorted by name.
        created: When, by the agent's clock.
    """

    format: int
    lineage: str
    name: str
    step: int | None
    rank: int
    world: int
    writer: str
    member: str
    generation: str
    base: int
    folder: str
    files: tuple[CommittedFile, ...]
    created: datetime


def member_name(rank: int, writer: str, life: int = 1) -> str:
    """The name of a life below `RANKS`."""
    return f"{rank}-{writer}" if life == 1 else f"{rank}.{life}-{writer}"


def member_of(name: str) -> tuple[int, int, str] | None:
    """Rank, life and writer of a name below `RANKS`; None where it is no member's."""
    head, dash, writer = name.partition("-")
    rank, dot, life = head.partition(".")
    if not (dash and rank.isdecimal() and (life.isdecimal() or not dot)):
        return None
    return int(rank), int(life) if dot else 1, writer


def part_name(name: str, rank: int) -> str:
    """Where a rank's part of a checkpoint lies, relative to the lineage."""
    return f"{PARTS}/{name}/{rank}.json"


def epoch_of(names: Iterable[str]) -> str:
    """What names a set of members: the first 32 digits of the SHA-256 of their sorted names in JSON."""
    return hashlib.sha256(msgspec.json.encode(sorted(names))).hexdigest()[:EPOCH_DIGITS]


def series_and_position(name: str) -> tuple[str, tuple[int, ...]]:
    """Which checkpoints a name belongs with (its text but the numbers), and its place there (its numbers).

    A trainer may keep several kinds with counters of their own, `step-1200` and `best-3`: steps of one kind
    alone follow each other. All numbers count, from the left: the last of `epoch=3-step=30-loss=0.2` is none.
    """
    return NUMBER.sub("#", name), tuple(map(int, NUMBER.findall(name)))


def joined_files(parts: Sequence[RankPart]) -> tuple[CommittedFile, ...]:
    """The files of a checkpoint whose parts are all there, sorted by name.

    What all ranks that have a name wrote alike is one file; else each rank's stays, with the rank on it.
    """
    held = sorted(
        ((file.name, part.rank, file) for part in parts for file in part.files), key=lambda x: x[:2]
    )
    files: list[CommittedFile] = []
    for _, group in groupby(held, key=lambda item: item[0]):
        same = [(rank, file) for _, rank, file in group]
        if len({(file.size, file.xxh128) for _, file in same}) == 1:
            files.append(msgspec.structs.replace(same[0][1], rank=None))
        else:
            files.extend(msgspec.structs.replace(file, rank=rank) for rank, file in same)
    return tuple(files)


def joined_folder(name: str, files: Iterable[CommittedFile]) -> str:
    """What names a checkpoint of several ranks. No data lies there: each rank has a folder of its own."""
    tagged = [
        (file.name, file.size, file.xxh128 if file.rank is None else f"{file.rank}:{file.xxh128}")
        for file in files
    ]
    return checkpoint_folder(name, tagged)


def encode_rank_document(document: RankPart | GangMember) -> bytes:
    """The document as indented JSON, sealed."""
    return encode_checksummed(document)


def decode_member(data: bytes, source: str) -> GangMember:
    """Read a member's document.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: None, or a damaged one.
    """
    return decode_checksummed(data, GangMember, FORMAT, source)


def decode_part(data: bytes, source: str) -> RankPart:
    """Read a part; a name in it that would leave the directory makes it corrupt.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: No part, or one with names that cannot be files.
    """
    part = decode_checksummed(data, RankPart, FORMAT, source)
    names = [text for file in part.files for text in (file.name, file.object)]
    files = [file.name for file in part.files]
    Corrupt.raise_any([*filter(None, map(name_problem, names)), *clashes(files)])
    return part
