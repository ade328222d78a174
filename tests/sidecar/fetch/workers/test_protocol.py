from __future__ import annotations

import asyncio
import socket

import pytest

from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.partial_file import WrittenRange
from podferry.sidecar.fetch.workers.protocol import (
    JobBatch,
    JobMessage,
    JobResult,
    StartMessage,
    WorkerReport,
    read_message,
    write_message,
)
from podferry.sidecar.state.transfer_counters import TransferCounters
from podferry.storage.checksum.checksums import Checksum, ChecksumKind
from podferry.storage.request_builder import Origin

CHECKSUM = Checksum(ChecksumKind.CRC32C, b"\x00\x01\x02\x03")
OBJECT = JobMessage(1, Entry("a", 3, '"t"'), "b", 0, 3, "", None, CHECKSUM, b"GET \xff")
RANGE = JobMessage(2, Entry("a", 9), "", 3, 6, "/partial/a", ChecksumKind.CRC64NVME, None, b"GET")
MESSAGES = [
    StartMessage(Origin("host", 443, tls=True), "/stage", 0o640, True, False, True, 7),
    JobBatch([OBJECT, RANGE]),
    WorkerReport(
        [
            JobResult(1, 0, None, CHECKSUM),
            JobResult(2, 3, WrittenRange(3, 6, "crc64nvme", 5), None, "status 500"),
        ],
        TransferCounters(),
        error=(28, "No space left on device", "a"),
        target_connections=4,
    ),
    JobBatch([]),
]


@pytest.fixture
async def ends():
    """A writer, and the reader at the other end."""
    ours, theirs = socket.socketpair()
    _, writer = await asyncio.open_connection(sock=ours)
    reader, other = await asyncio.open_connection(sock=theirs)
    yield writer, reader
    for one in (writer, other):
        one.close()


async def test_messages_arrive_as_they_were_written(ends):
    writer, reader = ends
    for message in MESSAGES:
        write_message(writer, message)
    assert [await read_message(reader, type(message)) for message in MESSAGES] == MESSAGES


async def test_the_end_of_the_process_within_a_message_is_noticed(ends):
    writer, reader = ends
    writer.write((100).to_bytes(4, "big") + b"torn")
    writer.close()
    with pytest.raises(asyncio.IncompleteReadError):
        await read_message(reader, JobBatch)
