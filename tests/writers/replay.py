"""Lays the moments of a trace out again, one after the other, under the eyes of a real detector."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tracer import Held, Moment, Trace

from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.detector import Detector, scan_checkpoints
from podferry.sidecar.checkpoint.detect.watcher import Watch
from podferry.sidecar.config.tuning import CheckpointSettings

SETTINGS = CheckpointSettings(quiet_seconds=1.0, quiet_seconds_no_close=5.0)
BETWEEN_CALLS, AFTERWARDS = 0.4, 30.0
Content = frozenset[tuple[str, bytes]]


@dataclass
class Replay:
    """A directory of its own, in which a trace happens again.

    Attributes:
        root: It.
        only: Of the traced directory, the part below this name: one pod's.
    """

    trace: Trace
    root: Path
    only: str = ""
    lying: dict[str, Held] = field(default_factory=dict)

    def moments(self) -> Iterator[tuple[Moment, set[str]]]:
        """Every moment once it lies there, with what was closed or moved in."""
        for moment in self.trace.moments:
            files = {
                name.removeprefix(self.only): held
                for name, held in moment.files.items()
                if name.startswith(self.only)
            }
            inodes = {held.inode: name for name, held in self.lying.items()}
            moved = {name for name, held in files.items() if inodes.get(held.inode, name) != name}
            self._lay(files)
            closed = {name.removeprefix(self.only) for name in moment.closed if name.startswith(self.only)}
            yield moment, (closed | moved) & files.keys()

    def _lay(self, files: dict[str, Held]) -> None:
        for name in self.lying.keys() - files.keys():
            (self.root / name).unlink()
        for name, held in files.items():
            if self.lying.get(name) != held:
                self._put(self.root / name, held, self.lying.get(name))
        self.lying = files

    def _put(self, path: Path, held: Held, before: Held | None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if before is None or before.inode != held.inode:
            path.unlink(missing_ok=True)
        if held.target is not None:
            path.symlink_to(held.target)
            return
        path.write_bytes(held.data)
        os.utime(path, ns=(held.mtime_ns, held.mtime_ns))

    def content(self, candidate: Candidate) -> Content:
        """A checkpoint's data as it lies there now."""
        return frozenset((name, self.lying[name].data) for name in candidate.data_files if name in self.lying)

    def versions(self) -> dict[str, dict[Content, int]]:
        """The whole versions of each checkpoint, with the moment at which the program said that it was saved.

        What it says nothing of, such as a configuration at the top, counts whenever anything was saved.
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
        """The moments at which rules and formats alone, as if all were quiet, take for whole what is not.

        What is only being removed is left out: a detector that has seen it before knows that.
        """
        whole, found = self.versions(), []
        for number, (moment, _) in enumerate(self.moments()):
            detector = Detector(self.root, Watch(SETTINGS.poll_seconds), SETTINGS, **rule)
            for candidate in await detector.scan({}, set(), final=True):
                content, versions = self.content(candidate), whole.get(candidate.name, {})
                removed = any(content < version and then < number for version, then in versions.items())
                if content not in versions and not removed:
                    found.append(f"{candidate.name} before {moment.call}: {sorted(dict(content))}")
        return found

    async def offered(self, **rule: bool) -> tuple[list[str], set[str]]:
        """One detector looks at every moment, while each call takes longer than the calls really do.

        Returns:
            What it took for whole and is not; what of all that was saved it has not taken for whole a while
            after the save.
        """
        whole, clock = self.versions(), [0.0]
        detector = Detector(self.root, Watch(SETTINGS.poll_seconds), SETTINGS, lambda: clock[0], **rule)
        handled: dict[str, Candidate] = {}
        wrong, missed, contents = [], set(), {}
        for moment, closed in self.moments():
            for pause, told in ((BETWEEN_CALLS, closed), (0.0, set()), (AFTERWARDS, set())):
                clock[0] += pause
                for candidate in await detector.scan(handled, told, final=False):
                    handled[candidate.name] = candidate
                    contents[candidate.name] = self.content(candidate)
                    if contents[candidate.name] not in whole.get(candidate.name, {}):
                        wrong.append(f"{candidate.name} before {moment.call}")
                if not moment.saved:
                    break
            if moment.saved in detector.present and contents.get(moment.saved) != self.content(
                detector.present[moment.saved]
            ):
                missed.add(f"{moment.saved}: {detector.not_ready.get(moment.saved)}")
        return wrong, missed
