"""What the agent and a process that helps it with fetching tell each other: frames of msgpack on a socket."""

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
LENGTH = 4
"""Bytes of a frame's length, most significant first."""


class StartMessage(msgspec.Struct, frozen=True):
    """The task, before any lot.

    Attributes:
        origin: Where everything is fetched from.
        root: The stage.
        file_mode: Permissions of its files.
        verify: See `podferry.sidecar.fetch.sinks.ChunkSink`, as `ranges_state`.
        most: Connections at once.
    """

    origin: Origin
    root: str
    file_mode: int
    verify: bool
    ranges_state: bool
    most: int


class JobMessage(msgspec.Struct, frozen=True, array_like=True):
    """One job.

    Attributes:
        number: Of the file, in the plan.
        entry: The object.
        file: What it becomes; of a range, empty.
        start: Of the range, bytes.
        length: Of it.
        path: Where a large file grows; empty for a whole one.
        kind: How its ranges are summed.
        wanted: What a whole one must add up to, where that is known.
        request: What is sent.
    """

    number: int
    entry: Entry
    file: str
    start: int
    length: int
    path: str
    kind: ChecksumKind | None
    wanted: Checksum | None
    request: bytes


class JobResult(msgspec.Struct, frozen=True, array_like=True):
    """What has become of an errand.

    Attributes:
        number: Of the file.
        start: Of the range.
        came: Of a range: what is written.
        sum: What an answer said that the whole adds up to.
        refused: Why it is for the store's own client; empty where it is done.
    """

    number: int
    start: int
    came: WrittenRange | None = None
    sum: Checksum | None = None
    refused: str = ""


class WorkerReport(msgspec.Struct, frozen=True):
    """What has happened since the report before.

    Attributes:
        outcomes: Of errands.
        meter: What was counted.
        failed: Errno and text where bytes could not be kept: the process ends.
        name: Of the object that they are of.
        last: Whether it was the last report.
        wanted: Connections that it would like to keep busy.
    """

    outcomes: list[JobResult]
    meter: TransferCounters
    failed: tuple[int, str] | None = None
    name: str = ""
    last: bool = False
    wanted: int = 0


class JobBatch(msgspec.Struct, frozen=True):
    """Errands; none of them is the end."""

    errands: list[JobMessage]


def put(writer: asyncio.StreamWriter, document: msgspec.Struct) -> None:
    """Write a frame."""
    data = msgspec.msgpack.encode(document)
    writer.write(len(data).to_bytes(LENGTH, "big") + data)


async def get(reader: asyncio.StreamReader, kind: type[T]) -> T:
    """Read a frame.

    Raises:
        asyncio.IncompleteReadError: The other end is gone.
    """
    size = int.from_bytes(await reader.readexactly(LENGTH), "big")
    return msgspec.msgpack.decode(await reader.readexactly(size), type=kind)
