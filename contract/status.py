"""The agent's status document: phase, datasets, checkpoints, outputs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from podferry.contract.destination.kind import Kind, of_main_kind
from podferry.contract.errors import Problem


class AgentPhase(StrEnum):
    """The agent's phases, in order; REFUSED and ENDED are final."""

    PLANNING = "planning"
    RESTORING = "restoring"
    PREFETCHING = "prefetching"
    OPEN = "open"
    DRAINING = "draining"
    ENDED = "ended"
    REFUSED = "refused"


class Transfer(msgspec.Struct):
    """Transfer counters, which restart at 0 with each start of the worker.

    Attributes:
        bytes: Payload received, including repeated fetches.
        discarded: Payload bytes discarded: truncated responses or checksum mismatches.
        files: Files completed.
        retries: Requests repeated.
        handed_over: Requests that the connection pool passed to the store's own client.
        why: The reason for the last of them.
        connections: Open connections.
        jobs: Ranges fetched by the connection pool.
        first_bytes: Responses by time to first byte: one count for each bound of
            `podferry.sidecar.state.transfer_counters.FIRST_BYTE_BUCKETS`, the last one for longer times.
        first_byte_seconds: The sum of these times.
    """

    bytes: int = 0
    discarded: int = 0
    files: int = 0
    retries: int = 0
    handed_over: int = 0
    connections: int = 0
    jobs: int = 0
    first_bytes: list[int] = []
    first_byte_seconds: float = 0.0
    why: str = ""


class DatasetStatus(msgspec.Struct):
    """The state of one dataset's prefetch.

    Attributes:
        uri: The dataset's location.
        path: Where the trainer reads it.
        files: Number of files for this pod; bytes: the sum of their sizes.
        files_done: Files that are complete in the staging directory.
        bytes_done: Bytes fetched, including those of partial files.
        files_kept: Complete files that an earlier start had already fetched.
        seconds: From the first request to the last rename.
        digest: The digest of the selection, before any shard, once listed.
        name: The NAME of `dataset.NAME`; empty for the unnamed dataset.
        in_memory: Whether its files are in memory; None if not yet known.
        rate: Bytes per second: over the last seconds while it runs, then the average.
        eta: Seconds left at this rate; None if unknown, and at the end.
        volume_bytes: Size of the staging directory's file system; volume_free: its free bytes.
        transfer: Transfer counters.
        size_limit: Bytes that `--size` of a cache's holder allows for the files; None for all of the volume.
    """

    uri: str
    path: str
    files: int = 0
    bytes: int = 0
    files_done: int = 0
    bytes_done: int = 0
    files_kept: int = 0
    seconds: float = 0.0
    digest: str | None = None
    name: str = ""
    in_memory: bool | None = None
    rate: float = 0.0
    eta: float | None = None
    volume_bytes: int = 0
    volume_free: int = 0
    transfer: Transfer = msgspec.field(default_factory=Transfer)
    size_limit: int | None = None


class RestoredStatus(msgspec.Struct, frozen=True):
    """The checkpoint that the trainer resumes from.

    Attributes:
        name: The checkpoint's name.
        path: Its file, its directory, or the common stem of its files, relative to the checkpoint directory;
            `.` if they have none.
        checkpoint, sequence, step, lineage, bytes: As in the commit.
        seconds: Duration of the restore.
    """

    name: str
    path: str
    checkpoint: str
    sequence: int
    step: int | None
    lineage: str
    bytes: int
    seconds: float


class DurableCheckpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """One checkpoint that this agent made durable. Times are Unix times in seconds.

    `doubts` says why it may be incomplete; a sure one has none. `kind` is what it is made of.
    """

    name: str
    sequence: int
    step: int | None
    bytes: int
    completed_at: float
    durable_at: float
    doubts: tuple[str, ...] = ()
    kind: Kind = Kind.STATE


def newest_durable(durable: Sequence[DurableCheckpoint]) -> DurableCheckpoint | None:
    """The newest of the main kind; `durable` is sorted, oldest first."""
    main = of_main_kind(durable)
    return main[-1] if main else None


class PassedOver(msgspec.Struct, frozen=True):
    """A newer commit that training did not resume from, and why."""

    name: str
    sequence: int
    reason: str


class CheckpointStatus(msgspec.Struct):
    """The state of the checkpoints.

    Attributes:
        uri: The destination.
        path: Where the trainer writes them.
        lineage: The lineage of the run.
        durable: The newest 50 checkpoints that this agent committed, oldest first.
        durable_count: How many it committed in all.
        pending: Names that are being written or uploaded, and those set apart.
        set_apart: Names that were refused for good, oldest first: later ones continue without them. Each is
            tried again once a minute, and at the end.
        pending_bytes: Their bytes.
        pending_since: When the oldest complete one of them became complete, as Unix time in seconds, or None.
        uploaded_bytes: Bytes sent by this agent, including repeated ones.
        referenced_bytes: Bytes not sent because an earlier commit has them.
        upload_rate: Bytes per second of the last upload.
        write_seconds: From the first to the last change of the newest checkpoint: the trainer's write time.
        fenced: Another agent has taken over this lineage: this one no longer commits.
        rival: An agent that has started in this lineage since, and has not ended; empty if there is none.
        problems: The last failure of each pending one, and whether the volume is full.
        restored: The checkpoint that training resumed from, or None.
        passed_over: Newer commits that it did not resume from, newest first, at most 20.
        passed_over_count: How many there are.
        ignored_names: Names in the directory that are not uploaded, the first 50, each with the reason.
        ignored_count: How many there are.
        leftovers: Where torn checkpoints of an earlier run were moved to.
        dataset_changes: How the datasets differ from those that the restored checkpoint was trained on.
        code_changes: How the training's code differs from the one that wrote it.
        similar_lineages: If nothing was found to resume from: the lineages of the same program, for people.
        open_files: How the agent finds out which files are open for writing, for people.
    """

    uri: str
    path: str
    lineage: str
    durable: list[DurableCheckpoint] = []
    durable_count: int = 0
    pending: list[str] = []
    set_apart: list[str] = []
    pending_bytes: int = 0
    pending_since: float | None = None
    uploaded_bytes: int = 0
    referenced_bytes: int = 0
    upload_rate: float = 0.0
    write_seconds: float = 0.0
    fenced: bool = False
    rival: str = ""
    problems: list[Problem] = []
    restored: RestoredStatus | None = None
    passed_over: list[PassedOver] = []
    passed_over_count: int = 0
    ignored_names: dict[str, str] = {}
    ignored_count: int = 0
    leftovers: list[str] = []
    dataset_changes: list[str] = []
    code_changes: list[str] = []
    similar_lineages: list[str] = []
    open_files: str = ""


class OutputStatus(msgspec.Struct):
    """The state of the outputs.

    Attributes:
        uri: The destination.
        path: Where the trainer writes them.
        files: Files whose current version is uploaded; bytes: the sum of their sizes.
        uploaded_at: When an upload last ended with nothing left to do, as Unix time in seconds.
        problems: Failures of the last upload.
    """

    uri: str
    path: str
    files: int = 0
    bytes: int = 0
    uploaded_at: float | None = None
    problems: list[Problem] = []


class Status(msgspec.Struct):
    """The agent's status.

    Attributes:
        phase: Its phase; `stage` in JSON.
        datasets: The unnamed one first, then by name.
        checkpoints, outputs: None if the pod has none.
        problems: Why it refused.
        retryable: Whether a new pod may succeed.
        starts: Number of starts of the worker in this pod.
        started_at: Unix time in seconds.
    """

    phase: AgentPhase = msgspec.field(default=AgentPhase.PLANNING, name="stage")
    datasets: list[DatasetStatus] = []
    checkpoints: CheckpointStatus | None = None
    outputs: OutputStatus | None = None
    problems: tuple[Problem, ...] = ()
    retryable: bool = False
    starts: int = 1
    started_at: float = 0.0
