"""The jobs of a connection pool: each writes its bytes from the connection's buffer straight into the stage.

Runs in the agent and in its worker processes. Every object costs some microseconds here: a job is one object,
without a task.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.partial_file import WrittenRange
from podferry.sidecar.staging.stage_writer import StageWriter
from podferry.storage.checksum.checksums import (
    Checksum,
    ChecksumKind,
    RunningChecksum,
    crc,
    crc64,
    fetched_range_kind,
    matches,
    running_checksum,
)
from podferry.storage.checksum.response_header import response_checksum
from podferry.storage.http.response_head import ResponseHead, UnexpectedResponse

PROMPT_SECONDS = 0.1
"""From its request to its last byte: what arrives so soon, and in one piece, is no mixture of two versions.

Somebody would have to overwrite just this file within that time, and before it none that is still to be
fetched: that would have another tag than the listed one. To ask for the tag of each small file again takes
10% longer, measured with 1,000 files of 30 KB from nginx on the same machine.
"""


class DamagedRange(UnexpectedResponse):
    """The bytes do not match the response's own checksum."""


class ChunkSink(msgspec.Struct, frozen=True):
    """What all jobs of a prefetch share.

    Attributes:
        stage: Where they write.
        verify: Whether to compare objects with the checksums in their responses.
        ranges_have_checksum: Whether a response with a range states the checksum of the object.
        on_file: Called when a job's file is published.
        on_range: Called when a job's range is written.
        computes: Whether to compute a CRC-64/NVME of everything, which holders of a cache state to readers.
        holds: Whether files that may be a mixture of two versions keep their partial names, although they are
            complete: until their store has confirmed them.
    """

    stage: StageWriter
    verify: bool
    ranges_have_checksum: bool
    on_file: Callable[[ObjectJob], None]
    on_range: Callable[[RangeJob, WrittenRange], None]
    computes: bool = False
    holds: bool = False


class ObjectJob:
    """Fetches a file in one request. See `podferry.storage.http.connection.GetJob`.

    Args:
        number: Of the file, in the plan.
        entry: The object.
        file: What it becomes in the stage.
        sink: Where it goes.
        checksum: The expected one, if it is known before the response.

    Attributes:
        content: CRC-64/NVME of the file; None if it was not computed.
        held: The complete partial file; empty once it has its name.
    """

    __slots__ = (
        "_hash",
        "_path",
        "_sink",
        "_stage",
        "_verify",
        "checksum",
        "content",
        "entry",
        "file",
        "held",
        "length",
        "number",
        "sent_at",
    )
    start = 0
    head_only = False

    def __init__(
        self, number: int, entry: Entry, file: Entry, sink: ChunkSink, checksum: Checksum | None = None
    ) -> None:
        self.number, self.entry, self.length, self.file = number, entry, entry.size, file
        self._sink, self._stage = sink, sink.stage
        self._path: Path | None = None
        self._hash: RunningChecksum | None = None
        self._verify = sink.verify and checksum is None
        self.checksum = checksum
        self.content = 0 if sink.computes else None
        self.held, self.sent_at = "", 0.0

    def receive_head(self, head: ResponseHead) -> None:
        """See `GetJob.receive_head`."""
        self._path, self.content = None, 0 if self._sink.computes else None
        if self._verify:
            self.checksum = response_checksum(head.raw, self.entry)

    def receive_body(self, data: memoryview, offset: int) -> None:
        """See `GetJob.receive_body`."""
        if self.content is not None:
            self.content = crc64(data, self.content)
        if len(data) == self.length:
            if self.checksum is not None and not matches(self.checksum, data):
                raise DamagedRange(f"not the {self.checksum} that it states")
            path = self._stage.write_complete(self.number, data)
        else:
            path = self._write_chunk(data, offset)
            if not path:
                return
        if self._sink.holds and not self._is_one_version(len(data)):
            self.held = path
        else:
            self._stage.rename_in(path, self.file.name)
        self._sink.on_file(self)

    def _is_one_version(self, last_bytes: int) -> bool:
        """Whether all bytes are of the version that the response's head names."""
        is_prompt = time.monotonic() - self.sent_at < PROMPT_SECONDS
        return self.checksum is not None or (is_prompt and last_bytes == self.length)

    def _write_chunk(self, data: memoryview, offset: int) -> str:
        """Write one of several chunks; after the last one, the path of the complete file."""
        if self._path is None:
            self._path = self._stage.create_partial(self.number)
            self._hash = running_checksum(self.checksum.kind) if self.checksum is not None else None
        self._stage.write(self._path, data, offset)
        if self._hash is not None:
            self._hash.update(data)
        if offset + len(data) < self.length:
            return ""
        if self._hash is not None and self.checksum and self._hash.digest() != self.checksum.value:
            raise DamagedRange(f"not the {self.checksum} that it states")
        return self._stage.complete(self._path)


class RangeJob:
    """Fetches a range of a large file. See `podferry.storage.http.connection.GetJob`.

    Args:
        number: Of the file, in the plan.
        entry: The object.
        start: Of the range, bytes.
        length: Of the range.
        path: The partial file.
        kind: Checksum to compute of its ranges, if any.
        sink: Where it goes.
    """

    __slots__ = ("_crc", "_sink", "checksum", "entry", "kind", "length", "number", "path", "sent_at", "start")
    head_only = False

    def __init__(
        self,
        number: int,
        entry: Entry,
        start: int,
        length: int,
        path: Path,
        kind: ChecksumKind | None,
        sink: ChunkSink,
    ) -> None:
        self.number, self.entry, self.start, self.length = number, entry, start, length
        self.path, self.kind, self._sink = path, kind, sink
        self._crc, self.sent_at = 0, 0.0
        self.checksum: Checksum | None = None

    def receive_head(self, head: ResponseHead) -> None:
        """See `GetJob.receive_head`."""
        self._crc = 0
        if self.kind is None and self._sink.ranges_have_checksum:
            self.checksum = response_checksum(head.raw, self.entry)
            self.kind = fetched_range_kind(self.checksum) if self.checksum is not None else None
        if self.kind is None and self._sink.computes:
            self.kind = ChecksumKind.CRC64NVME

    def receive_body(self, data: memoryview, offset: int) -> None:
        """See `GetJob.receive_body`."""
        self._sink.stage.write(self.path, data, self.start + offset)
        if self.kind is not None:
            self._crc = crc(self.kind, data, self._crc)
        if offset + len(data) == self.length:
            self._sink.on_range(self, WrittenRange(self.start, self.length, self.kind or "", self._crc))


Job = ObjectJob | RangeJob
"""The jobs that fetch bytes."""


class HeadJob:
    """Fetches the `checksum` of a large object, which stays None if the response states none."""

    __slots__ = ("checksum", "entry", "length", "number", "sent_at")
    start = 0
    head_only = True

    def __init__(self, number: int, entry: Entry) -> None:
        self.number, self.entry, self.length, self.sent_at = number, entry, entry.size, 0.0
        self.checksum: Checksum | None = None

    def receive_head(self, head: ResponseHead) -> None:
        """See `GetJob.receive_head`."""
        self.checksum = response_checksum(head.raw, self.entry)

    def receive_body(self, data: memoryview, offset: int) -> None:
        """See `GetJob.receive_body`; never called: there is no body."""
