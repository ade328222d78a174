"""A real detector over a real directory, with a clock of its own: what would it commit, and how sure?"""

from __future__ import annotations

import contextlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from oracle import Oracle, Tree, Unit, by_form, read_tree

from podferry.sidecar.checkpoint.detect.assessor import TrainerContext
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.detect.inotify import Inotify
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles
from podferry.sidecar.checkpoint.detect.watcher import Watch
from podferry.sidecar.checkpoint.detect.write_lease import is_open_for_writing
from podferry.sidecar.config.tuning import CheckpointSettings

SETTINGS = CheckpointSettings(quiet_seconds=1.0, quiet_seconds_no_close=5.0)
STALL_SECONDS = (0.5, 0.6, 1.0, 1.4, 2.0, 3.0, 6.0, 15.5)
"""Steps of the clock while a program stops for half a minute."""
ORDINALS = {1: "first", 2: "second"}
END_SECONDS = 1.9
"""So long after its end, a complete checkpoint must be sure; it is scanned within the 2 s."""


@dataclass
class Findings:
    """What a judge got wrong.

    Attributes:
        torn: Incomplete checkpoints that were sure, each as `checkpoint: files`.
        unsure: Saves that were complete and not sure in time, each with `first`, `second`, `later` or
            `followed`, and why.
    """

    torn: list[str] = field(default_factory=list)
    unsure: list[tuple[str, str]] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        """Include others."""
        self.torn += other.torn
        self.unsure += other.unsure


class _Events(Watch):
    """What inotify has reported, without waiting for more.

    Attributes:
        deaf: Read nothing: a copy of this process would take the events away from this one.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(SETTINGS.poll_seconds)
        self._inotify = Inotify(root)
        self._closed: set[Path] = set()
        self.deaf = False

    def read(self) -> None:
        """Read what has been reported, as an agent does within milliseconds."""
        if self.deaf:
            return
        closed, lost = self._inotify.read()
        self._closed |= closed
        if lost or not self._inotify.watches_root:
            self._inotify.refresh()

    async def wait(self, seconds: float) -> set[Path]:
        """See `Watch.wait`."""
        self.read()
        closed, self._closed = self._closed, set()
        self.moved = frozenset(self._inotify.moved)
        self._inotify.moved.clear()
        self.begun = frozenset(self._inotify.begun)
        return closed

    def expect_change(self, paths: Iterable[Path]) -> None:
        """See `Watch.expect_change`."""
        for path in () if self.deaf else paths:
            self._inotify.watch_file(path)

    def close(self) -> None:
        self._inotify.close()


class Judge:
    """Scans at chosen moments and compares what is sure with the oracle.

    Args:
        root: The directory.
        oracle: What is complete.
        gang: As in a `TrainerContext`.
        asks: The agent may learn who has a file open for writing.
    """

    def __init__(self, root: Path, oracle: Oracle, *, gang: bool, asks: bool) -> None:
        self._root, self._oracle, self._clock = root, oracle, 1000.0
        self._events = _Events(root)
        self._alive = True
        self._detector = Detector(
            root,
            self._events,
            SETTINGS,
            lambda: self._clock,
            context=TrainerContext(
                gang=gang,
                one_life=True,
                open_files=OpenFiles(sees_writers=True, by_lease=self._is_open) if asks else None,
            ),
        )
        self._settled: dict[str, Candidate] = {}
        self._held: dict[str, list[Candidate]] = defaultdict(list)
        self._trees: dict[int, Tree] = {}
        self._sure: list[Tree] = []
        self.findings = Findings()

    def _is_open(self, path: Path) -> bool:
        """In an imagined future in which the program was killed, it has nothing open."""
        return self._alive and is_open_for_writing(path)

    def close(self) -> None:
        """Release the instance of inotify."""
        self._events.close()

    def watch(self) -> None:
        """Take notice of closes and moves, without a scan."""
        self._events.read()

    def step(self, seconds: float, *, final: bool = False, succeeded: bool = False) -> None:
        """Let time pass, then scan."""
        self._clock += seconds
        closed = _run(self._detector.wait_for_change())
        for found in _run(self._detector.scan(self._settled, closed, final=final, succeeded=succeeded)):
            self._settled[found.name] = found
            tree = {name: (self._root / name).read_bytes() for name, _ in found.files}
            self._held[found.name].append(found)
            self._trees[id(found)] = tree
            if not found.doubts:
                self._take(found, tree)
        for found in self._detector.proven:
            held = [one for one in self._held[found.name] if one.version == found.version]
            for newest in held[-1:]:
                self._take(newest, self._reread(newest))

    def _reread(self, candidate: Candidate) -> Tree:
        """What is committed in the end: content that changes behind an identity is read again."""
        present = self._detector.present.get(candidate.name)
        if present is None or present.version != candidate.version:
            return self._trees[id(candidate)]
        return {name: (self._root / name).read_bytes() for name, _ in candidate.files}

    def _take(self, candidate: Candidate, tree: Tree) -> None:
        """A checkpoint is sure."""
        if not self._oracle.is_complete(tree):
            self.findings.torn.append(f"{candidate.name}: {sorted(tree)}")
        self._sure.append(by_form(tree))

    def end(self, code: int) -> None:
        """The program has ended with this exit status."""
        self._alive = False
        self.step(0.1, final=True, succeeded=code == 0)

    def stall(self) -> None:
        """Half a minute passes."""
        for seconds in STALL_SECONDS:
            self.step(seconds)

    def expect_sure(self, units: Iterable[Unit], kind: str = "") -> None:
        """These are complete and must be sure by now."""
        for unit in units:
            if not any(unit.has(tree) for tree in self._sure):
                found = kind or ORDINALS.get(unit.count, "later")
                self.findings.unsure.append((found, f"{unit.name}: {self._why()}"))

    def present(self, saves: Collection[int]) -> list[Unit]:
        """The complete units in the directory that belong to these saves."""
        tree = {name: file.data for name, file in read_tree(self._root).items()}
        return [unit for unit in self._oracle.present(tree) if unit.save in saves]

    def _why(self) -> str:
        reasons = [str(problem) for problem in self._detector.not_ready.values()]
        doubts = [f"{doubt.kind}: {doubt.reason}" for one in self._settled.values() for doubt in one.doubts]
        return "; ".join([*doubts, *reasons]) or "not seen"

    def imagine(self, future: Callable[[Judge], None]) -> Findings:
        """What this judge would find in a possible future: it happens in a copy of this process."""
        reads, writes = os.pipe()
        pid = os.fork()
        if not pid:
            with _last_act(writes) as answer:
                self.findings, self._events.deaf = Findings(), True
                future(self)
                answer.append(json.dumps(asdict(self.findings)))
        os.close(writes)
        with os.fdopen(reads, "rb") as answer:
            data = answer.read()
        os.waitpid(pid, 0)
        found = json.loads(data)
        return Findings(found["torn"], [(kind, why) for kind, why in found["unsure"]])


@contextlib.contextmanager
def _last_act(descriptor: int) -> Iterator[list[str]]:
    """Send what the block appends, then end the process."""
    answer: list[str] = []
    try:
        yield answer
    finally:
        os.write(descriptor, "".join(answer).encode())
        os._exit(0)


def _run(coroutine):
    """Run a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("it waits")
