"""What a restarted worker must know, in one small JSON document.

It is replaced atomically: a kill at any moment leaves the old document or the new one. The document is flat;
in memory it is two records, the agent's and that of its checkpoints, which have one owner each.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import msgspec
from msgspec import field

from podferry.contract.destination.commit import CommittedFile, Doubt
from podferry.contract.destination.provenance import DatasetVersion
from podferry.contract.http_api import Gate
from podferry.contract.status import DurableCheckpoint, PassedOver, RestoredStatus
from podferry.contract.versioned_json import decode_document
from podferry.sidecar.runtime.atomic_file import replace_file
from podferry.sidecar.runtime.file_identity import Files

FORMAT = 1


class PublishedPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rank's part that is sent and waits for the other ranks' parts.

    `files` are as the trainer wrote them, `sent` as a commit lists them; `folder` is relative to the lineage.
    They were found complete at `completed_at`, and `changed_at` is the newest modification time among them,
    both in seconds since the epoch. `doubts` say why they may be incomplete.
    """

    files: Files
    completed_at: float
    changed_at: float
    folder: str
    sent: tuple[CommittedFile, ...]
    doubts: tuple[Doubt, ...] = ()


class DoubtfulCommit(msgspec.Struct, frozen=True):
    """A doubtful commit of this agent: a later save may prove it, and then it is confirmed.

    `files` are the data files as the trainer wrote them; `checkpoint` is the folder of the commit, `doubts`
    are this pod's.
    """

    sequence: int
    name: str
    checkpoint: str
    files: Files
    doubts: tuple[Doubt, ...]


class AgentRecord(msgspec.Struct):
    """The agent itself.

    Attributes:
        gate: The open gate's answer; set once, before any trainer is let through.
        starts: Number of worker starts.
        agent_id: The agent's name at the destination, for as long as its pod lives.
        newest_first: The pod is ending: the newest checkpoint is sent first. A restarted worker must know,
            because what is committed before an older checkpoint decides that one's number.
        drain_until: Deadline of the drain on the machine's monotonic clock; None before it begins.
        datasets: What training reads, as it was listed before the gate opened.
        dataset_changes: How that differs from what the restored checkpoint was trained on, for people.
        code_changes: How the code differs from the one that wrote it, for people.
    """

    gate: Gate | None = None
    starts: int = 0
    agent_id: str = field(default="", name="writer")
    newest_first: bool = False
    drain_until: float | None = None
    datasets: list[DatasetVersion] = []
    dataset_changes: list[str] = []
    code_changes: list[str] = []
    format: int = FORMAT


class CheckpointRecord(msgspec.Struct):
    """The checkpoints; only `VersionRegistry` writes it.

    Attributes:
        settled: The files of each checkpoint's newest durable or restored version, by its name.
        fingerprints: XXH3-128 of each file of these versions, by the checkpoint's and the file's name.
        durable: What this agent committed, by sequence: the newest, and those whose files are still local.
        durable_count: How many this agent committed in all.
        ignored: What was there before this agent and is older than the newest commit: never uploaded.
        restored: What training resumed from.
        passed_over: Newer commits that it did not resume from, the newest of them.
        passed_over_count: How many there are.
        leftovers: Where leftovers of an earlier run were moved to, before training started.
        damaged: Objects at the destination that the restore found damaged: no commit may refer to them.
        abandoned: The first and the last sequence of the commits that this run left behind when it began, if
            any; the first is that of the one it resumed from.
        sequences: The commit's sequence of each hold, by the hold's number: a checkpoint between two of them
            must get a sequence between theirs.
        unsettled: Numbers of holds whose commit was tried while older ones wait, and it is not known yet
            whether it exists. No older one may be committed before that is known.
        published: Parts that wait for other ranks' parts, by the checkpoint's name.
        marks: The files of each version that the trainer marked complete, by the checkpoint's name.
        doubtful: Commits with doubts that nothing has settled yet, oldest first.
        confirming: Those that are proven complete by now and whose confirmation is not written yet.
        began_ns: When this agent began, by the clock of the checkpoints' file system.
        linked: Inodes of the files in the directory that were linked, or were about to be.
        places: Inodes of files and directories, the names at which they were written, and when.
    """

    settled: dict[str, Files] = field(default_factory=dict, name="handled")
    fingerprints: dict[str, dict[str, str]] = {}
    durable: list[DurableCheckpoint] = []
    durable_count: int = 0
    ignored: dict[str, Files] = field(default_factory=dict, name="left_out")
    restored: RestoredStatus | None = None
    passed_over: list[PassedOver] = []
    passed_over_count: int = 0
    leftovers: list[str] = []
    damaged: list[str] = []
    abandoned: tuple[int, int] | None = None
    sequences: dict[int, int] = field(default_factory=dict, name="placed")
    unsettled: list[int] = []
    published: dict[str, PublishedPart] = field(default_factory=dict, name="offered")
    marks: dict[str, Files] = {}
    doubtful: list[DoubtfulCommit] = []
    confirming: list[DoubtfulCommit] = []
    began_ns: int = 0
    linked: list[int] = []
    places: list[tuple[int, str, int]] = []

    @property
    def last_hold(self) -> int:
        """The highest number of a hold that is known."""
        return max(self.sequences, default=0)


class Journal:
    """Both records and their file; raises Corrupt or FormatTooNew if it is not what this agent wrote."""

    def __init__(self, control: Path) -> None:
        control.mkdir(parents=True, exist_ok=True)
        self._path = control / "journal.json"
        self.agent, self.checkpoints = AgentRecord(), CheckpointRecord()
        if self._path.exists():
            data, source = self._path.read_bytes(), str(self._path)
            self.agent = decode_document(data, AgentRecord, FORMAT, source)
            self.checkpoints = decode_document(data, CheckpointRecord, FORMAT, source)
        self.agent.agent_id = self.agent.agent_id or uuid.uuid4().hex

    def save(self) -> None:
        """Replace the file. Survives a kill of the process, not of the node: pods live in memory."""
        agent, checkpoints = msgspec.json.encode(self.agent), msgspec.json.encode(self.checkpoints)
        replace_file(self._path, agent[:-1] + b"," + checkpoints[1:])  # one flat object of both
