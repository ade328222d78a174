"""What marked checkpoints contained when the trainer marked them, as far as an identity does not show it.

A trainer that keeps a mapping open changes what it has marked without a change of size or times. So files
that are open for writing are read while the trainer waits for the answer, and compared with what is uploaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping

import structlog

from podferry.contract.destination.commit import CommittedFile
from podferry.contract.errors import Changed
from podferry.contract.http_api import Marked
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.pipeline.detector_record import DetectorRecord

log = structlog.get_logger(__name__)

ReadOpen = Callable[[Candidate], Awaitable[Mapping[str, str]]]
"""The XXH3-128 of a candidate's files that are open for writing, by name, if they can be read in time."""


class MarkedContent:
    """Marks checkpoints, and voids a mark once what it was for has changed."""

    def __init__(self, detector: Detector, record: DetectorRecord, read_open: ReadOpen) -> None:
        self._detector, self._record, self._read_open = detector, record, read_open
        self._content: dict[str, Mapping[str, str]] = {}
        self._counts = Counter[str]()

    async def mark(self, checkpoint: str) -> Marked:
        """The trainer says that a checkpoint is complete as it is now."""
        answer = await self._detector.mark(checkpoint)
        name = answer.checkpoint
        if not answer.problems and name in self._detector.marks:
            self._counts[name] += 1
            self._content[name] = await self._read_open(Candidate(name, self._detector.marks[name]))
        self._record.save_marks()
        return answer

    def count(self, name: str) -> int:
        """How often a checkpoint was marked: one that comes during an upload is not for what is uploaded."""
        return self._counts[name]

    def check(self, candidate: Candidate, files: Iterable[CommittedFile]) -> None:
        """Raise `Changed` if a marked version was uploaded with other content than it was marked with."""
        known = self._content.get(candidate.name, {}) if self._is_marked(candidate) else {}
        for one in files:
            if known.get(one.name, one.xxh128) != one.xxh128:
                raise Changed.of(f"{one.name} has changed since it was marked")

    def void(self, candidate: Candidate, count: int) -> None:
        """A version has changed while it was uploaded; `count` is that of before the upload."""
        if count == self._counts[candidate.name] and self._is_marked(candidate):
            log.info("a mark is void: what it was for has changed", name=candidate.name)
            self.forget(candidate.name)

    def forget(self, name: str) -> None:
        """A mark was for other content."""
        self._detector.marks.pop(name, None)
        self._content.pop(name, None)
        self._record.save_marks()

    def _is_marked(self, candidate: Candidate) -> bool:
        return dict(self._detector.marks.get(candidate.name, ())) == candidate.data_files
