"""The commit record, which makes a checkpoint exist, and the layout of the destination. Format 2.

    <lineage>/<checkpoint>/<natural names>            data; never changed once a commit lists it
    <lineage>/.podferry/commits/<sequence>.json       the commit, created conditionally, last
    <lineage>/.podferry/latest.json                   a copy of the newest commit: a hint, not the truth
    <lineage>/.podferry/parts/<name>/<rank>.json      with several ranks: one part each (`rank_parts`)
    <lineage>/.podferry/ranks/<rank>-<writer>         the agents that have taken part
    <lineage>/.podferry/notes/<writer>.json           how an agent ended, and what did not become durable
    <lineage>/.podferry/writer.json                   the agent that started writing here last
    <lineage>/.podferry/writers/<writer>.json         the newest commit when an agent started
    <lineage>/.podferry/removing/<remover>.json       a removal in progress (`tombstones`)
    <lineage>/.podferry/confirmed/<sequence>.json     a doubtful commit that is complete (`confidence`)

`<checkpoint>` is the checkpoint's name and a hash of its content: each version of `last.pt` is another
checkpoint, and uploading the same content twice writes the same bytes to the same names. A content that has
to be committed again, such as one that was damaged, gets a folder with the agent's id appended.

Only doubtful commits have format 2: podferry 0.1, which reads format 1, would take them for sure ones. Sure
commits keep format 1, which it reads.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from podferry.contract.code_version import CodeVersion
from podferry.contract.destination.kind import Kind, kind_of
from podferry.contract.destination.private_names import PRIVATE
from podferry.contract.destination.provenance import DatasetVersion, RunOrigin
from podferry.contract.destination.series import NUMBER, without_parts
from podferry.contract.errors import Corrupt
from podferry.contract.file_names import clashes, name_problem
from podferry.contract.versioned_json import decode_checksummed, encode_checksummed

FORMAT, DOUBTFUL_FORMAT = 1, 2
COMMITS = f"{PRIVATE}/commits"
LATEST = f"{PRIVATE}/latest.json"
SEQUENCE = re.compile(r"(\d{12})\.json")
HASH_DIGITS = 12
"""Hexadecimal digits of the content hash in a checkpoint's folder: 48 bits distinguish its versions."""


class Confidence(StrEnum):
    """Whether something proves that a commit has the entire checkpoint."""

    SURE = "sure"
    DOUBTFUL = "doubtful"


class DoubtKind(StrEnum):
    """Why a checkpoint may be incomplete."""

    UNPROVEN = "unproven"
    """Nothing shows that a file, or the set of files, is complete."""
    FEWER = "fewer"
    """It has fewer files than the one before."""
    SMALLER = "smaller"
    """A file is clearly smaller than in the one before."""
    MIXED = "mixed"
    """Only some of the files were replaced that are replaced in every save."""
    OPEN = "open"
    """A file was still open for writing."""
    LEFT_OUT = "left-out"
    """It lacks what a link to outside the checkpoint directory leads to; no later save settles that."""


class Doubt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reason why a commit may be incomplete.

    Attributes:
        kind: For programs.
        reason: For people, with the names and the measured values.
        rank: The rank whose part it is about; None if one pod wrote all.
    """

    kind: DoubtKind
    reason: str
    rank: int | None = None


class CommittedFile(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """One file of a checkpoint.

    Attributes:
        name: Relative to the checkpoint directory, as the trainer wrote it.
        object: The object with its bytes, relative to the lineage; may be in an earlier checkpoint's folder.
        size: Bytes.
        xxh128: XXH3-128 of the uploaded bytes, 32 hexadecimal digits, as `xxh128sum` prints it. It runs at
            20 GiB/s, SHA-256 without CPU instructions for it at 0.3 GiB/s: it delays neither uploads nor
            restores, and takes none of the trainer's cores.
        rank: The rank that wrote it, if ranks wrote different files of this name; None if all share it.
    """

    name: str
    object: str
    size: int
    xxh128: str
    rank: int | None = None


class Commit(msgspec.Struct, frozen=True, omit_defaults=True):
    """A complete checkpoint.

    Attributes:
        format: Version of this document.
        sequence: The order of a lineage's commits, from 1. A gap is a removed commit, or one that a drain has
            reserved for an older checkpoint, which is uploaded after the newest.
        lineage: The lineage of the run.
        checkpoint: The folder of its data: name and hash.
        name: The trainer's name for it, without the hash.
        step: The last number in the name, or None.
        created: By the agent's clock, with time zone. For people: the sequence is the order.
        files: All its files, sorted by name.
        world: Number of pods that wrote it together.
        run: KFP's run id, or None outside KFP.
        agent_id: The agent that wrote it, unique to one life of its pod.
        rank: The rank of that agent's pod, or None if unknown.
        reserved: How many numbers directly below its own were free when it was created. Its agent had seen no
            commit there, which distinguishes two agents that commit at the same time.
        confidence: Whether it is proven complete; None in commits of podferry 0.1 (see `confidence`).
        doubts: Why it is not, in a doubtful commit.
        datasets: What it was trained on, by name; None if that is not recorded, as in podferry 0.1.
        origin: The program that wrote it, outside Kubernetes.
        code: The code that wrote it, as far as it is known; None in commits of podferry 0.1.
        late: Its files were last written before those of a commit of another name with a lower number.
    """

    format: int
    sequence: int
    lineage: str
    checkpoint: str
    name: str
    step: int | None
    created: datetime
    files: tuple[CommittedFile, ...]
    agent_id: str = msgspec.field(name="writer")
    world: int = 1
    run: str | None = None
    rank: int | None = None
    reserved: int = msgspec.field(default=0, name="room")
    confidence: Confidence | None = None
    doubts: tuple[Doubt, ...] = ()
    datasets: tuple[DatasetVersion, ...] | None = None
    origin: RunOrigin | None = None
    code: CodeVersion | None = None
    late: bool = False

    @property
    def is_sure(self) -> bool:
        """Whether it is proven complete; ask only for commits that `CommitReader` has returned."""
        return self.confidence is Confidence.SURE

    @property
    def bytes(self) -> int:
        """Sum of the sizes."""
        return sum(file.size for file in self.files)

    @property
    def kind(self) -> Kind:
        """What it is made of, by its files, so that commits of earlier versions have a kind, too."""
        kind = kind_of((file.name for file in self.files), (file.size for file in self.files))
        return Kind.LATE if self.late and kind is not Kind.RECORD else kind


def commit_name(sequence: int) -> str:
    """The name of a commit, relative to the lineage; names sort like their numbers."""
    return f"{COMMITS}/{sequence:012d}.json"


def sequence_of(name: str) -> int | None:
    """The sequence number of a name directly below `COMMITS`, or None if it is not a commit."""
    match = SEQUENCE.fullmatch(name)
    return int(match[1]) if match else None


def step_of(name: str) -> int | None:
    """The step in a checkpoint's name: its last number that is no shard's (`step-1200-rank3` is 1200)."""
    numbers = NUMBER.findall(without_parts(name))
    return int(numbers[-1]) if numbers else None


def checkpoint_folder(name: str, files: Iterable[tuple[str, int, str]]) -> str:
    """The folder of a checkpoint's data; `files` have (name, size, content fingerprint), in any order."""
    lines = msgspec.json.encode(sorted(files))
    return f"{name}-{hashlib.sha256(lines).hexdigest()[:HASH_DIGITS]}"


def encode_commit(commit: Commit) -> bytes:
    """The commit as indented JSON with a checksum."""
    return encode_checksummed(commit)


def decode_commit(data: bytes, source: str) -> Commit:
    """Read a commit from `source`; one with a name that would leave the directory is corrupt.

    Raises:
        FormatTooNew: Written by a later podferry.
        Corrupt: Not a commit, damaged, or with names that cannot be files.
    """
    commit = decode_checksummed(data, Commit, DOUBTFUL_FORMAT, source)
    names = [text for file in commit.files for text in (file.name, file.object)]
    files = sorted({file.name for file in commit.files})
    Corrupt.raise_any([*filter(None, map(name_problem, names)), *clashes(files)])
    return commit
