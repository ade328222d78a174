"""Documents that pods exchange to write one checkpoint together. Format 1.

    <lineage>/.podferry/ranks/<rank>-<writer>         one life of a pod: its `GangMember`
    <lineage>/.podferry/ranks/<rank>.<n>-<writer>     the same after its trainer restarted, n from 2
    <lineage>/.podferry/parts/<name>/<rank>.json      a rank's part of a checkpoint: its `RankPart`

All names below `ranks/` together are the *epoch* (`generation` in documents). Deleted names never return, and
no life deletes its last one, so a past epoch never returns.
`podferry.sidecar.checkpoint.gang.coordinator` explains its use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

import msgspec

from podferry.contract.destination.commit import CommittedFile, Doubt, checkpoint_folder
from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.destination.series import NUMBER
from podferry.contract.errors import Corrupt
from podferry.contract.file_names import clashes, name_problem
from podferry.contract.versioned_json import decode_checksummed, document_decoder

FORMAT = 1
RANKS = f"{PRIVATE}/ranks"
PARTS = f"{PRIVATE}/parts"
EPOCH_DIGITS = 32
"""Hexadecimal digits that identify an epoch."""


class MembershipView(msgspec.Struct, frozen=True):
    """An epoch as one agent saw it.

    Attributes:
        time: When the agent first listed it: Unix time in seconds, by the agent's clock.
        epoch: `epoch_of` the names.
    """

    time: float
    epoch: str = msgspec.field(name="generation")


class GangMember(msgspec.Struct, frozen=True):
    """One life of an agent's pod in a lineage. Its name has rank, life and writer.

    Attributes:
        format: Version of this document.
        agent_id: The agent's id, as in its commits.
        created: When this was first written.
        base: The newest commit's sequence at that time, or 0: later ones are of this life.
        before: The names that existed when the life started.
        views: The epochs that it has seen, oldest first; kept across restarts of the worker.
    """

    format: int
    agent_id: str = msgspec.field(name="writer")
    created: datetime
    base: int
    before: tuple[str, ...] = ()
    views: tuple[MembershipView, ...] = ()


class RankPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """One rank's part of a checkpoint, completely uploaded.

    Attributes:
        format: Version of this document.
        lineage: The lineage of the run.
        name: The trainers' name for the checkpoint.
        step: The step in the name, or None: parts without a step are never joined.
        rank: The rank that wrote it.
        world: Number of ranks.
        agent_id: That rank's agent.
        member: Its name below `ranks/` when it wrote this.
        epoch: The one that its agent had seen before the last change to the files; empty if none.
        base: The newest commit's sequence when the attempt started: later ones are of the same attempt, or of
            one that it has replaced.
        folder: Folder of the files that no other checkpoint has, relative to the lineage.
        files: Sorted by name.
        created: By the agent's clock.
        doubts: Why this part may be incomplete.
    """

    format: int
    lineage: str
    name: str
    step: int | None
    rank: int
    world: int
    agent_id: str = msgspec.field(name="writer")
    member: str
    epoch: str = msgspec.field(name="generation")
    base: int
    folder: str
    files: tuple[CommittedFile, ...]
    created: datetime
    doubts: tuple[Doubt, ...] = ()


def member_name(rank: int, agent_id: str, life: int = 1) -> str:
    """The name of a life below `RANKS`."""
    return f"{rank}-{agent_id}" if life == 1 else f"{rank}.{life}-{agent_id}"


def member_of(name: str) -> tuple[int, int, str] | None:
    """Rank, life and agent of a name below `RANKS`, or None if it is not a member's."""
    head, dash, agent_id = name.partition("-")
    rank, dot, life = head.partition(".")
    if not (dash and rank.isdecimal() and (life.isdecimal() or not dot)):
        return None
    return int(rank), int(life) if dot else 1, agent_id


def part_name(name: str, rank: int) -> str:
    """The name of a rank's part of a checkpoint, relative to the lineage."""
    return f"{PARTS}/{name}/{rank}.json"


def epoch_of(names: Iterable[str]) -> str:
    """The id of a set of members: the first 32 digits of the SHA-256 of their sorted names in JSON."""
    return hashlib.sha256(msgspec.json.encode(sorted(names))).hexdigest()[:EPOCH_DIGITS]


def series_and_position(name: str) -> tuple[str, tuple[int, ...]]:
    """A name's series (its text without the numbers), and its position in the series (its numbers).

    A trainer may write several kinds with separate counters, `step-1200` and `best-3`: only steps of one kind
    are ordered. All numbers count, from the left: the last one of `epoch=3-step=30-loss=0.2` is not a step.
    """
    return NUMBER.sub("#", name), tuple(map(int, NUMBER.findall(name)))


def joined_files(parts: Sequence[RankPart]) -> tuple[CommittedFile, ...]:
    """The files of a checkpoint from all its parts, sorted by name.

    A name with equal content from all its ranks is one file; else each rank's file is listed with its rank.
    """
    held = [(file.name, part.rank, file) for part in parts for file in part.files]
    held.sort(key=itemgetter(0, 1))
    files: list[CommittedFile] = []
    for _, group in groupby(held, key=itemgetter(0)):
        same = [(rank, file) for _, rank, file in group]
        if len({(file.size, file.xxh128) for _, file in same}) == 1:
            files.append(msgspec.structs.replace(same[0][1], rank=None))
        else:
            files.extend(msgspec.structs.replace(file, rank=rank) for rank, file in same)
    return tuple(files)


def joined_doubts(parts: Iterable[RankPart]) -> tuple[Doubt, ...]:
    """The doubts about all parts, each with its rank."""
    return tuple(msgspec.structs.replace(doubt, rank=part.rank) for part in parts for doubt in part.doubts)


def joined_folder(name: str, files: Iterable[CommittedFile]) -> str:
    """The id of a checkpoint of several ranks. It holds no data: each rank has its own folder."""
    tagged = [
        (file.name, file.size, file.xxh128 if file.rank is None else f"{file.rank}:{file.xxh128}")
        for file in files
    ]
    return checkpoint_folder(name, tagged)


decode_member = document_decoder(GangMember, FORMAT, checksummed=True)


def decode_part(data: bytes, source: str) -> RankPart:
    """Read a part; one with a name that would leave the directory is corrupt.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: Not a part, damaged, or with names that cannot be files.
    """
    part = decode_checksummed(data, RankPart, FORMAT, source)
    names = [text for file in part.files for text in (file.name, file.object)]
    files = [file.name for file in part.files]
    Corrupt.raise_any([*filter(None, map(name_problem, names)), *clashes(files)])
    return part
