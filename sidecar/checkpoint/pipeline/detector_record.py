"""Keeps in the journal what the detector must still know when another worker takes over."""

from __future__ import annotations

from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.runtime.file_identity import Files
from podferry.sidecar.state.journal import Journal


class DetectorRecord:
    """The marks of the trainer, which change times are the agent's own, and where files were written."""

    def __init__(self, detector: Detector, journal: Journal) -> None:
        """Give the detector what earlier workers knew."""
        self._detector, self._journal, self._record = detector, journal, journal.checkpoints
        detector.marks.update(self._record.marks)
        detector.times.load(self._record.began_ns, self._record.linked)
        detector.places.load(self._record.places)

    def begin(self, began_ns: int) -> None:
        """This agent begins now, in nanoseconds since the epoch: earlier times are not its trainer's."""
        self._detector.times.load(began_ns, ())
        self._record.began_ns = began_ns
        self._journal.save()

    def save_marks(self) -> None:
        """The trainer has marked a checkpoint complete, or a mark is void."""
        self._record.marks = dict(self._detector.marks)
        self._journal.save()

    def save_places(self) -> None:
        """Keep where files were written, but for those that were linked: their change times show nothing."""
        places = self._detector.places.dump(self._detector.times.linked)
        known = {(inode, name) for inode, name, _ in self._record.places}
        if not known.issuperset((inode, name) for inode, name, _ in places):
            self._record.places = places
            self._journal.save()

    def link(self, files: Files) -> None:
        """These files are about to be linked: saved before that, since a worker may be killed right after."""
        if self._detector.times.link(files):
            self._record.linked = sorted(self._detector.times.linked)
            self._journal.save()
