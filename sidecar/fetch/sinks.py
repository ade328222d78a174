"""Where the lean lane's bytes land: straight from a connection's buffer into the stage, summed on the way.

Runs in the agent and in the processes that help it. Every object costs this code some microseconds, so there
is one object a job and no task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.partial_file import WrittenRange
from podferry.sidecar.staging.staging_dir import StagingDir
from podferry.storage.checksum.checksums import (
    Checksum,
    ChecksumKind,
    RunningChecksum,
    crc,
    matches,
    range_kind,
    running_checksum,
)
from podferry.storage.checksum.response_header import response_checksum
from podferry.storage.http.response_head import ResponseHead, UnexpectedResponse


class DamagedRange(UnexpectedResponse):
    """The bytes are not those that the answer's own checksum promises."""


@dataclass(frozen=True, slots=True)
class ChunkSink:
    """What all jobs of a prefetch share.

    Attributes:
        stage: Where they land.
        verify: Compare what comes with the checksums that answers state.
        ranges_state: Whether an answer with a range states that of the whole object.
        whole: Is told of a file that has its name.
        ranged: Is told of a range that is written.
    """

    stage: StagingDir
    verify: bool
    ranges_state: bool
    whole: Callable[[ObjectJob], None]
    ranged: Callable[[RangeJob, WrittenRange], None]


class ObjectJob:
    """A file in one request.

    Args:
        number: Of the file, in the plan.
        entry: The object.
        file: What it becomes in the stage.
        landing: Where.
        wanted: What it must add up to, where that is known without the store.
    """

    __slots__ = (
        "_landing",
        "_path",
        "_running",
        "_stage",
        "_states",
        "entry",
        "file",
        "length",
        "number",
        "sum",
    )
    start = 0
    head_only = False

    def __init__(
        self, number: int, entry: Entry, file: Entry, landing: ChunkSink, wanted: Checksum | None = None
    ) -> None:
        self.number, self.entry, self.length, self.file = number, entry, entry.size, file
        self._landing, self._stage = landing, landing.stage
        self._path: Path | None = None
        self._running: RunningChecksum | None = None
        self._states = landing.verify and wanted is None
        self.sum = wanted

    def receive_head(self, head: ResponseHead) -> None:
        """See `podferry.storage.http.connection.GetJob`."""
        self._path = None
        if self._states:
            self.sum = response_checksum(head.raw, self.entry) if head.may_have_checksum else None

    def receive_body(self, data: memoryview, offset: int) -> None:
        """See `podferry.storage.http.connection.GetJob`."""
        if len(data) == self.length:
            if self.sum is not None and not matches(self.sum, data):
                raise DamagedRange(f"not the {self.sum} that it states")
            self._stage.put(self.number, data, self.file)
        elif not self._grown(data, offset):
            return
        self._landing.whole(self)

    def _grown(self, data: memoryview, offset: int) -> bool:
        """Write one of several pieces; whether it was the last, and the file has its name."""
        if self._path is None:
            self._path = self._stage.grow(self.number)
            self._running = running_checksum(self.sum.kind) if self.sum is not None else None
        self._stage.write(self._path, data, offset)
        if self._running is not None:
            self._running.update(data)
        if offset + len(data) < self.length:
            return False
        if self._running is not None and self.sum is not None and self._running.digest() != self.sum.value:
            raise DamagedRange(f"not the {self.sum} that it states")
        self._stage.admit(self._path, self.file)
        return True


class RangeJob:
    """A range of a large file, which grows aside.

    Args:
        number: Of the file, in the plan.
        entry: The object.
        start: Of the range, bytes.
        length: Of it.
        path: Where the file grows.
        kind: How its ranges are summed, None where they are not.
        landing: Where it belongs.
    """

    __slots__ = ("_crc", "_landing", "entry", "kind", "length", "number", "path", "start", "sum")
    head_only = False

    def __init__(
        self,
        number: int,
        entry: Entry,
        start: int,
        length: int,
        path: Path,
        kind: ChecksumKind | None,
        landing: ChunkSink,
    ) -> None:
        self.number, self.entry, self.start, self.length = number, entry, start, length
        self.path, self.kind, self._landing = path, kind, landing
        self._crc = 0
        self.sum: Checksum | None = None

    def receive_head(self, head: ResponseHead) -> None:
        """See `podferry.storage.http.connection.GetJob`."""
        self._crc = 0
        if self.kind is None and self._landing.ranges_state and head.may_have_checksum:
            self.sum = response_checksum(head.raw, self.entry)
            self.kind = range_kind(self.sum) if self.sum is not None else None

    def receive_body(self, data: memoryview, offset: int) -> None:
        """See `podferry.storage.http.connection.GetJob`."""
        self._landing.stage.write(self.path, data, self.start + offset)
        if self.kind is not None:
            self._crc = crc(self.kind, data, self._crc)
        if offset + len(data) == self.length:
            self._landing.ranged(self, WrittenRange(self.start, self.length, self.kind or "", self._crc))


Job = ObjectJob | RangeJob
"""What brings bytes."""


class HeadJob:
    """Asks for the head of a large object: what it must add up to.

    Attributes:
        sum: The answer; None where it states none.
    """

    __slots__ = ("entry", "length", "number", "sum")
    start = 0
    head_only = True

    def __init__(self, number: int, entry: Entry) -> None:
        self.number, self.entry, self.length = number, entry, entry.size
        self.sum: Checksum | None = None

    def receive_head(self, head: ResponseHead) -> None:
        """See `podferry.storage.http.connection.GetJob`."""
        self.sum = response_checksum(head.raw, self.entry) if head.may_have_checksum else None

    def receive_body(self, data: memoryview, offset: int) -> None:
        """See `podferry.storage.http.connection.GetJob`: never, as there is no body."""
