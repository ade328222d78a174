"""A real detector over a real directory, with a clock of its own: what would it commit, and how sure?"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from oracle import Oracle, Tree, Unit, by_form, read_tree

from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.detect.inotify import Inotify
from podferry.sidecar.checkpoint.detect.watcher import Watch
from podferry.sidecar.config.tuning import CheckpointSettings

SETTINGS = CheckpointSettings(quiet_seconds=1.0, quiet_seconds_no_close=5.0)
STALL_SECONDS = (0.5, 0.6, 1.0, 1.4, 2.0, 3.0, 6.0, 15.5)
"""Steps of the clock while a program stops for half a minute."""
END_SECONDS = 1.9
"""So long after its end, a complete checkpoint must be sure; it is scanned within the 2 s."""


async def _at_once(function, *arguments):
    return function(*arguments)


asyncio.to_thread = _at_once  # forked judges have no threads


@dataclass
class Findings:
    """What a judge got wrong.

    Attributes:
        torn: Incomplete checkpoints that were sure, each as `checkpoint: files`.
        unsure: Units that were complete, and not sure in time, each as `name: why`.
    """

    torn: list[str] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        """Include others."""
        self.torn += other.torn
        self.unsure += other.unsure


class Judge:
    """Scans at chosen moments and compares what is sure with the oracle.

    Args:
        root: The directory.
        oracle: What is complete.
        gang: As for a `Detector`.
    """

    def __init__(self, root: Path, oracle: Oracle, *, gang: bool) -> None:
        self._root, self._oracle, self._clock = root, oracle, 1000.0
        self._detector = Detector(
            root, Watch(SETTINGS.poll_seconds), SETTINGS, lambda: self._clock, gang=gang
        )
        self._inotify = Inotify(root)
        self._settled: dict[str, object] = {}
        self._sure: list[Tree] = []
        self._doubts: dict[str, str] = {}
        self.findings = Findings()

    def close(self) -> None:
        """Release the instance of inotify."""
        self._inotify.close()

    def step(self, seconds: float, *, final: bool = False) -> None:
        """Let time pass, then scan."""
        self._clock += seconds
        closed, lost = self._inotify.read()
        if lost or not self._inotify.watches_root:
            self._inotify.refresh()
        names = {path.relative_to(self._root).as_posix() for path in closed}
        for found in _run(self._detector.scan(self._settled, names, final=final)):
            self._judge(found)

    def _judge(self, candidate) -> None:
        self._settled[candidate.name] = candidate
        tree = {name: (self._root / name).read_bytes() for name, _ in candidate.files}
        if not self._oracle.is_complete(tree):
            self.findings.torn.append(f"{candidate.name}: {sorted(tree)}")
        self._sure.append(by_form(tree))

    def stall(self) -> None:
        """Half a minute passes."""
        for seconds in STALL_SECONDS:
            self.step(seconds)

    def expect_sure(self, units: list[Unit]) -> None:
        """These are complete and must be sure by now."""
        for unit in units:
            if not any(unit.has(tree) for tree in self._sure):
                self.findings.unsure.append(f"{unit.name}: {self._why(unit)}")

    def present(self, saves: Collection[int]) -> list[Unit]:
        """The complete units in the directory that belong to these saves."""
        tree = {name: file.data for name, file in read_tree(self._root).items()}
        return [unit for unit in self._oracle.present(tree) if unit.save in saves]

    def _why(self, unit: Unit) -> str:
        first = " (the first of its kind)" if unit.first else ""
        reasons = [str(problem) for problem in self._detector.not_ready.values()]
        return f"{'; '.join([*self._doubts.values(), *reasons]) or 'not seen'}{first}"

    def imagine(self, future: Callable[[Judge], None]) -> Findings:
        """What this judge would find in a possible future: it happens in a copy of this process."""
        reads, writes = os.pipe()
        pid = os.fork()
        if not pid:
            with _last_act(writes) as answer:
                self.findings = Findings()
                future(self)
                answer.append(json.dumps(asdict(self.findings)))
        os.close(writes)
        with os.fdopen(reads, "rb") as answer:
            data = answer.read()
        os.waitpid(pid, 0)
        return Findings(**json.loads(data))


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
