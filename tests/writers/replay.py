"""Replays the moments of a trace in a directory, for a real detector."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tracer import Moment, Trace, TracedFile

from podferry.sidecar.checkpoint.detect.assessor import TrainerContext
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.detector import Detector, scan_checkpoints
from podferry.sidecar.checkpoint.detect.watcher import Watch
from podferry.sidecar.config.tuning import CheckpointSettings

SETTINGS = CheckpointSettings(quiet_seconds=1.0, quiet_seconds_no_close=5.0)
CALL_SECONDS, SETTLE_SECONDS = 0.4, 30.0
Content = frozenset[tuple[str, bytes]]


@dataclass
class Replay:
    """Replays a trace.

    Attributes:
        trace: The trace.
        root: The directory.
        only: Prefix of the traced names to replay: one pod's directory.
    """

    trace: Trace
    root: Path
    only: str = ""
    files: dict[str, TracedFile] = field(default_factory=dict)

    def moments(self) -> Iterator[tuple[Moment, set[str]]]:
        """Each moment, after it is set up in the directory, with the files closed or moved in."""
        for moment in self.trace.moments:
            files = {
                name.removeprefix(self.only): file
                for name, file in moment.files.items()
                if name.startswith(self.only)
            }
            inodes = {file.inode: name for name, file in self.files.items()}
            moved = {name for name, file in files.items() if inodes.get(file.inode, name) != name}
            self._set_up(files)
            closed = {name.removeprefix(self.only) for name in moment.closed if name.startswith(self.only)}
            yield moment, (closed | moved) & files.keys()

    def _set_up(self, files: dict[str, TracedFile]) -> None:
        for name in self.files.keys() - files.keys():
            (self.root / name).unlink()
        for name, file in files.items():
            if self.files.get(name) != file:
                self._write(self.root / name, file, self.files.get(name))
        self.files = files

    def _write(self, path: Path, file: TracedFile, previous: TracedFile | None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if previous is None or previous.inode != file.inode:
            path.unlink(missing_ok=True)
        if file.target is not None:
            path.symlink_to(file.target)
            return
        path.write_bytes(file.data)
        os.utime(path, ns=(file.mtime_ns, file.mtime_ns))

    def content(self, candidate: Candidate) -> Content:
        """A checkpoint's current data."""
        return frozenset((name, self.files[name].data) for name in candidate.data_files if name in self.files)

    def versions(self) -> dict[str, dict[Content, int]]:
        """The complete versions of each checkpoint, with the moment at which the program announced them.

        Names that it never announces, such as a configuration at the top, count whenever anything is saved.
        """
        named = {moment.saved for moment in self.trace.moments if moment.saved}
        found: dict[str, dict[Content, int]] = {}
        for number, (moment, _) in enumerate(self.moments()):
            last = number == len(self.trace.moments) - 1
            for name, candidate in scan_checkpoints(self.root)[1].items():
                if moment.saved == name or (name not in named and (moment.saved or last)):
                    found.setdefault(name, {}).setdefault(self.content(candidate), number)
        return found

    async def torn(self, **rule: bool) -> list[str]:
        """The moments at which rules and formats alone, without pauses, accept an incomplete checkpoint.

        Checkpoints that are only being deleted are left out: a detector that saw them before knows that.
        """
        complete, found = self.versions(), []
        for number, (moment, _) in enumerate(self.moments()):
            detector = Detector(
                self.root, Watch(SETTINGS.poll_seconds), SETTINGS, context=TrainerContext(**rule)
            )
            for candidate in await detector.scan({}, set(), final=True):
                content, versions = self.content(candidate), complete.get(candidate.name, {})
                removed = any(content < version and then < number for version, then in versions.items())
                if content not in versions and not removed:
                    found.append(f"{candidate.name} before {moment.call}: {sorted(dict(content))}")
        return found

    async def accepted(self, **rule: bool) -> tuple[list[str], set[str]]:
        """Let one detector scan at every moment, with a clock that makes each call slower than it was.

        Returns:
            Incomplete checkpoints that it accepted; saved checkpoints that it has not accepted a while after
            the save.
        """
        complete, clock = self.versions(), [0.0]
        detector = Detector(
            self.root,
            Watch(SETTINGS.poll_seconds),
            SETTINGS,
            lambda: clock[0],
            context=TrainerContext(**rule),
        )
        settled: dict[str, Candidate] = {}
        wrong, missed, contents = [], set(), {}
        for moment, closed in self.moments():
            for pause, names in ((CALL_SECONDS, closed), (0.0, set()), (SETTLE_SECONDS, set())):
                clock[0] += pause
                for candidate in await detector.scan(settled, names, final=False):
                    settled[candidate.name] = candidate
                    contents[candidate.name] = self.content(candidate)
                    if contents[candidate.name] not in complete.get(candidate.name, {}):
                        wrong.append(f"{candidate.name} before {moment.call}")
                if not moment.saved:
                    break
            if moment.saved in detector.present and contents.get(moment.saved) != self.content(
                detector.present[moment.saved]
            ):
                missed.add(f"{moment.saved}: {detector.not_ready.get(moment.saved)}")
        return wrong, missed
