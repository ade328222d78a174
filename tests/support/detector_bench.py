"""A detector over a directory, with a clock that the test moves."""

from __future__ import annotations

import pickle

from podferry.contract.spec import Completion
from podferry.sidecar.checkpoint.detect.assessor import TrainerContext
from podferry.sidecar.checkpoint.detect.detector import Detector
from podferry.sidecar.checkpoint.detect.watcher import Watch
from podferry.sidecar.config.tuning import CheckpointSettings

WHOLE = pickle.dumps({"w": list(range(10))})
SHORT, LONG = 1.0, 5.0
"""Seconds of `SETTINGS`: after a close that was seen, and without one."""
SETTINGS = CheckpointSettings(quiet_seconds=SHORT, quiet_seconds_no_close=LONG)


class Bench:
    """A detector with a manual clock.

    `doubts` are the kinds of those of each version found last, by name; `proven` the names proven later.
    """

    def __init__(self, root, completion=Completion.AUTO, **rule):
        self.root, self.now, self.settled = root, 100.0, {}
        self.doubts, self.proven = {}, []
        self.detector = Detector(
            root,
            Watch(SETTINGS.poll_seconds),
            SETTINGS,
            lambda: self.now,
            completion=completion,
            context=TrainerContext(**rule),
        )

    def write(self, name, data=b"1"):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_bytes(data)

    async def scan(self, *closed, after=0.0, final=False, settle=True, succeeded=False):
        self.now += after
        found = await self.detector.scan(self.settled, set(closed), final=final, succeeded=succeeded)
        self.doubts |= {one.name: {str(doubt.kind) for doubt in one.doubts} for one in found}
        self.proven += [one.name for one in self.detector.proven]
        if settle:
            self.settled.update({candidate.name: candidate for candidate in found})
        return [candidate.name for candidate in found]


async def save(bench, *names, data=WHOLE, pause=SHORT):
    """Write files, all closed, and wait; the names of what is accepted after the pause."""
    for name in names:
        bench.write(name, data)
    await bench.scan(*names)
    return await bench.scan(after=pause)


async def replace(bench, *names, data=WHOLE, pause=SHORT):
    """The same, each file renamed over the earlier one."""
    for name in names:
        (bench.root / name).unlink(missing_ok=True)
    return await save(bench, *names, data=data, pause=pause)
