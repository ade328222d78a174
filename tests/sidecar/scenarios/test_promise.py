"""Random trainers, stores and deaths: the promise holds at every moment.

A seed draws a schedule of steps: the trainer writes (in place, renamed, several files, slowly), removes and
thins out; the store fails, loses answers, is unreachable; the worker dies and restarts. At every write the
rig's store checks that each commit is complete and unchanged. This test also checks that each is a version
that the trainer completed, and that the newest one never goes back.
"""

from __future__ import annotations

import asyncio
import shutil
from random import Random

import pytest

from podferry.contract.errors import AccessDenied, Throttled, Unavailable
from podferry.storage.memory.store import Fault
from tests.support.patience import PATIENCE

STEPS, SEEDS = 12, 8
CHUNK = 1500


class Death(BaseException):
    """Ends a worker as if killed."""


class Trainer:
    """Writes versions, each a number in its every file; remembers those that it completed."""

    def __init__(self, rig, random):
        self.rig, self.random = rig, random
        self.number = 0
        self.completed: dict[tuple[tuple[str, bytes], ...], int] = {}
        self.open = None

    def _version(self, names):
        self.number += 1
        return dict.fromkeys(names, b"%06d" % self.number * CHUNK)

    def _complete(self, files):
        self.completed[tuple(sorted(files.items()))] = self.number

    def last_in_place(self):
        (item,) = self._version(["last.bin"]).items()
        self.rig.write(*item)
        self._complete(dict([item]))

    def last_aside(self):
        (item,) = self._version(["last.bin"]).items()
        self.rig.replace(*item)
        self._complete(dict([item]))

    def several(self):
        files = self._version([f"step-{self.number}/{name}" for name in ("a.bin", "b/c.bin")])
        aside = self.rig.base / "aside"
        for name, data in files.items():
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        (top,) = {name.partition("/")[0] for name in files}
        (aside / top).rename(self.rig.root / top)
        self._complete(files)

    def pair(self):
        """Two files of one stem, overwritten one after the other."""
        files = self._version(["pair.raw", "pair.opt"])
        for name, data in files.items():
            self.rig.write(name, data)
        self._complete(files)

    def remove_slowly(self):
        """As a rotation that is seen half-way."""
        done = {commit.name for commit in self.rig.store.commits()}
        found = sorted(path for path in self.rig.root.iterdir() if path.is_dir() and path.name in done)
        files = sorted(found[0].rglob("*.bin")) if found else []
        if files:
            files[0].unlink()

    def remove(self):
        stems = sorted({path.stem for path in self.rig.root.iterdir()})[:1]
        for path in [path for path in self.rig.root.iterdir() if path.stem in stems]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def tick(self):
        """Let the file system's clock advance, so that no two versions have the same time."""
        probe = self.rig.base / "probe"
        probe.write_bytes(b"")
        before = probe.stat().st_mtime_ns
        while probe.stat().st_mtime_ns == before:
            probe.write_bytes(b"1")


def break_store(rig, random):
    failure = random.choice([Unavailable.of("no route"), Throttled.of("slower"), AccessDenied.of("no")])
    call, pattern = random.choice(
        [("write", "*"), ("write", "*/commits/*"), ("read", "*"), ("children", "*"), ("write", "*.bin")]
    )
    rig.faults.append(
        Fault(call, pattern, times=random.randint(1, 6), error=failure, after=random.random() < 0.5)
    )


def kill(rig, random):
    pattern = random.choice(["*/commits/*", "*/latest.json", "*.bin", "*.opt"])
    rig.faults.append(Fault("write", pattern, error=Death(), after=random.random() < 0.5))


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_every_commit_is_a_completed_version_and_the_newest_never_goes_back(any_rig, seed):
    random = Random(seed)  # noqa: S311 - a schedule, no secret
    trainer = Trainer(any_rig, random)
    writes = [trainer.last_in_place, trainer.last_aside, trainer.several, trainer.pair]
    others = [trainer.remove_slowly, trainer.remove]
    steps = [random.choice([*writes, *writes, *others]) for _ in range(STEPS)]
    at = 0
    while at < len(steps):
        async with asyncio.timeout(PATIENCE):
            try:
                async with any_rig.running() as pipeline:
                    while at < len(steps):
                        step, at = steps[at], at + 1
                        random.choice([break_store, kill, lambda *_: None, lambda *_: None])(any_rig, random)
                        step()
                        trainer.tick()
                        await pipeline.flush(random.choice([0.0, 0.02, 0.1]))
                        if random.random() < 0.2:
                            break
            except BaseExceptionGroup as group:
                defect = group.split(Death)[1]
                if defect is not None:
                    raise defect from None
        await check(any_rig, trainer)
    any_rig.faults.clear()
    trainer.tick()
    trainer.last_aside()
    async with any_rig.running() as pipeline:
        assert (await pipeline.flush(PATIENCE)).durable
    await check(any_rig, trainer)
    assert (await any_rig.restored())[1] == {"last.bin": b"%06d" % trainer.number * CHUNK}


async def check(rig, trainer):
    commits = rig.store.commits()
    folders = [commit.checkpoint for commit in commits]
    assert len(set(folders)) == len(folders)
    numbers = [trainer.completed[tuple(sorted(rig.store.bytes_of(commit).items()))] for commit in commits]
    assert numbers == sorted(numbers)
