"""What the agent reports on `/v1/status`: phase, datasets, checkpoints, outputs."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from podferry.contract.errors import Problem


class AgentPhase(StrEnum):
    """How far the agent is, in this order; REFUSED and ENDED are final."""

    PLANNING = "planning"
    RESTORING = "restoring"
    PREFETCHING = "prefetching"
    OPEN = "open"
    DRAINING = "draining"
    ENDED = "ended"
    REFUSED = "refused"


class Transfer(msgspec.Struct):
    """What the store was asked for, and how it answered. Counts begin anew with each start of the worker.

    Attributes:
        bytes: Payload that has come, what was fetched again included.
        discarded: Bytes of it that were thrown away: cut off, or not what their checksum says.
        files: How many became whole.
        retries: Requests that were sent again.
        handed_over: Requests that the lean lane gave to the store's own client.
        why: Why it gave the last of them.
        connections: Open now.
        jobs: Ranges that the lean lane carried.
        first_bytes: Answers by the time to their first byte: within each bound of
            `podferry.sidecar.state.transfer_counters.FIRST_BYTE_BUCKETS` and, last, beyond.
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
    """The prefetch of one dataset so far.

    Attributes:
        uri: Where the dataset lies.
        path: Where the trainer reads it.
        files: How many of it this pod is to have; bytes: their sum.
        files_done: How many are whole in the stage.
        bytes_done: How many are there, those of files that still grow included.
        files_kept: How many of them an earlier start had already fetched.
        seconds: From the first request to the last rename.
        digest: The digest of the selection, before any shard, once listed.
        name: That of `dataset.NAME`; empty for the dataset that has none.
        in_memory: Whether its files lie in memory; None before it has been looked at.
        rate: Bytes a second: of the last seconds while it runs, then of the whole.
        eta: Seconds that are left at this rate; None while nothing is known, and at the end.
        volume_bytes: Size of the file system that holds the stage; volume_free: what of it is free.
        transfer: What the store was asked for.
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


class RestoredStatus(msgspec.Struct, frozen=True):
    """What the trainer resumes from.

    Attributes:
        name: The checkpoint.
        path: Relative to the checkpoint directory: its one file, its directory, or the stem that its files
            share.
        checkpoint, sequence, step, lineage, bytes: As the commit says.
        seconds: How long it took.
    """

    name: str
    path: str
    checkpoint: str
    sequence: int
    step: int | None
    lineage: str
    bytes: int
    seconds: float


class DurableCheckpoint(msgspec.Struct, frozen=True):
    """One checkpoint that this agent made durable. Times are seconds since the epoch."""

    name: str
    sequence: int
    step: int | None
    bytes: int
    completed_at: float
    durable_at: float


class CheckpointStatus(msgspec.Struct):
    """The checkpoints so far.

    Attributes:
        uri: The destination.
        path: Where the trainer writes them.
        lineage: Which attempts belong together.
        durable: Those that this agent committed, oldest first.
        pending: Names that are written or on their way.
        pending_bytes: Their bytes.
        pending_since: When the oldest of them that is whole became so, seconds since the epoch; None where
            none is.
        uploaded_bytes: Sent by this agent so far, what was sent again included.
        referenced_bytes: Not sent, since an earlier commit has them.
        upload_rate: Bytes a second of the last upload.
        write_seconds: From the first to the last change of the newest checkpoint: what the trainer took.
        fenced: Another agent has taken this lineage over: nothing of this one is committed any more.
        problems: The last failure of each pending one, and that the volume is full where it is.
        restored: What training resumed from, None where it starts anew.
    """

    uri: str
    path: str
    lineage: str
    durable: list[DurableCheckpoint] = []
    pending: list[str] = []
    pending_bytes: int = 0
    pending_since: float | None = None
    uploaded_bytes: int = 0
    referenced_bytes: int = 0
    upload_rate: float = 0.0
    write_seconds: float = 0.0
    fenced: bool = False
    problems: list[Problem] = []
    restored: RestoredStatus | None = None


class OutputStatus(msgspec.Struct):
    """The outputs so far.

    Attributes:
        uri: The destination.
        path: Where the trainer writes them.
        files: How many are uploaded as they are now; bytes: their sum.
        uploaded_at: When an upload last ended with nothing left to do, seconds since the epoch.
        problems: What went wrong in the last upload.
    """

    uri: str
    path: str
    files: int = 0
    bytes: int = 0
    uploaded_at: float | None = None
    problems: list[Problem] = []


class Status(msgspec.Struct):
    """Everything that the agent tells.

    Attributes:
        stage: How far it is.
        datasets: The one without a name first, then by name; empty where the pod has none.
        checkpoints, outputs: None where the pod has none.
        problems: Why it refused.
        retryable: Whether a new pod may fare better.
        starts: How often the worker has been started in this pod.
        started_at: Seconds since the epoch.
    """

    stage: AgentPhase = AgentPhase.PLANNING
    datasets: list[DatasetStatus] = []
    checkpoints: CheckpointStatus | None = None
    outputs: OutputStatus | None = None
    problems: tuple[Problem, ...] = ()
    retryable: bool = False
    starts: int = 1
    started_at: float = 0.0
