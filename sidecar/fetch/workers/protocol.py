"""The messages between the agent and a worker process: msgpack frames on a socket.

The agent sends 1. a `StartMessage`, 2. `JobBatch`es, the last one empty. The worker sends `WorkerReport`s.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec

from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.partial_file import WrittenRange
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.checksum.checksums import Checksum, ChecksumKind
from podferry.storage.request_builder import Origin

T = TypeVar("T")
LENGTH_BYTES = 4
"""Of a frame's length, most significant byte first."""


class StartMessage(msgspec.Struct, frozen=True):
    """What all jobs have in common.

    Attributes:
        origin: Where to fetch from.
        root: The stage.
        file_mode: Permissions of its files.
        verify, ranges_have_checksum: See `podferry.sidecar.fetch.sinks.ChunkSink`.
        computes: See there.
        max_connections: The worker's share.
        holds: See `podferry.sidecar.fetch.sinks.ChunkSink`.
    """

    origin: Origin
    root: str
    file_mode: int
    verify: bool
    ranges_have_checksum: bool
    computes: bool
    max_connections: int
    holds: bool = False


class JobMessage(msgspec.Struct, frozen=True, array_like=True):
    """One job.

    Attributes:
        number: Of the file, in the plan.
        entry: The object.
        file: Name in the stage; empty for a range.
        start, length: The range, bytes.
        path: The partial file of a range; empty for an object.
        kind: Checksum to compute of a range.
        checksum: The expected one of an object, if known.
        request: What to send.
    """

    number: int
    entry: Entry
    file: str
    start: int
    length: int
    path: str
    kind: ChecksumKind | None
    checksum: Checksum | None
    request: bytes


class BundleMessage(msgspec.Struct, frozen=True, array_like=True):
    """Files that arrive together.

    Attributes:
        entry: What the request is for.
        files: Jobs without requests of their own.
        request: What to send.
    """

    entry: Entry
    files: list[JobMessage]
    request: bytes


class JobResult(msgspec.Struct, frozen=True, array_like=True):
    """The end of a job.

    Attributes:
        number: Of the file.
        start: Of the range.
        written: The range that is in the file; None for an object.
        checksum: Of the object, if the response stated it.
        refusal: Why the job is for the store's own client; empty if it is complete.
        content, held: See `podferry.sidecar.fetch.sinks.ObjectJob`.
    """

    number: int
    start: int
    written: WrittenRange | None = None
    checksum: Checksum | None = None
    refusal: str = ""
    content: int | None = None
    held: str = ""


class WorkerReport(msgspec.Struct, frozen=True):
    """What happened since the previous report.

    Attributes:
        results: Of jobs.
        counters: What was counted.
        error: Errno, text and object's name if bytes could not be written: the worker ends.
        last: Whether the worker is done.
        target_connections: How many it would like to keep busy.
    """

    results: list[JobResult]
    counters: TransferCounters
    error: tuple[int, str, str] | None = None
    last: bool = False
    target_connections: int = 0


class JobBatch(msgspec.Struct, frozen=True):
    """Jobs; an empty batch is the last."""

    jobs: list[JobMessage]
    bundles: list[BundleMessage] = []


def write_message(writer: asyncio.StreamWriter, message: msgspec.Struct) -> None:
    """Write a frame."""
    data = msgspec.msgpack.encode(message)
    writer.write(len(data).to_bytes(LENGTH_BYTES, "big") + data)


async def read_message(reader: asyncio.StreamReader, kind: type[T]) -> T:
    """Read a frame; raises `asyncio.IncompleteReadError` if the other end has closed."""
    size = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
    return msgspec.msgpack.decode(await reader.readexactly(size), type=kind)
