"""How fast a checkpoint becomes durable, against s5cmd, and in how much memory.

The agent is already running, as with a trainer. Its time is that of a process which renames the checkpoint
into the agent's directory and asks for durability, up to the answer: the look, the digests, the parts, the
commit. The content is new in every round, or nothing would be sent.
"""

from __future__ import annotations

import itertools
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents import Agent, agent
from harness import Command, Contest, Finding
from serving import BUCKET, KEYS, MIB, s5cmd
from training import hand_over

from podferry.contract.destination.private_names import PRIVATE

TRAINING = str(Path(__file__).with_name("training.py"))
CONSTANT = 1.25
"""The peak for the large file over that for the small one: what is called constant."""
numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Load:
    """A checkpoint: one file, or a directory of several."""

    name: str
    title: str
    count: int
    size: int

    def names(self, step: int) -> list[str]:
        """Of its files, relative to the checkpoint directory."""
        if self.count == 1:
            return [f"step-{step}.bin"]
        return [f"step-{step}/shard-{part:03}.bin" for part in range(self.count)]

    def write(self, template: Path, outbox: Path) -> None:
        """Lay a checkpoint with content of its own into a folder."""
        step = next(numbers)
        for name in self.names(step):
            path = outbox / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(template, path)
            stamp(path, f"{step} {name}")


def make_template(path: Path, size: int) -> Path:
    """Bytes that do not compress."""
    draw = random.Random(size).randbytes  # noqa: S311 - data, no secret
    with path.open("wb") as file:
        for start in range(0, size, MIB):
            file.write(draw(min(MIB, size - start)))
    return path


def stamp(path: Path, text: str) -> None:
    """Change a few bytes of every MiB: no part of the file is as it was."""
    with path.open("r+b") as file:
        for start in range(0, path.stat().st_size, MIB):
            file.seek(start)
            file.write(text.encode())


def same(one: Path, other: Path) -> bool:
    """Whether two directories hold the same names with the same bytes."""
    names = [
        sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file()) for root in (one, other)
    ]
    return names[0] == names[1] and all(equal(one / name, other / name) for name in names[0])


def equal(one: Path, other: Path) -> bool:
    """Whether two files hold the same bytes."""
    with one.open("rb") as first, other.open("rb") as second:
        while block := first.read(MIB):
            if block != second.read(MIB):
                return False
        return not second.read(1)


def empty(folder: Path) -> None:
    """Remove the files of a directory."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def uploading(load: Load, folder: Path, server: tuple[str, Path], through: Agent) -> Contest:
    """Every contestant moves its own checkpoint, in memory, to its destination."""
    endpoint, held = server
    template = make_template(folder / f"{load.name}.template", load.size)

    def taking(name: str, words: Sequence[str], source: Path, target: Callable[[], Path]) -> Command:
        outbox = folder / load.name / name

        def check() -> None:
            copied = target()
            if not same(source, copied):
                raise RuntimeError(f"{name} did not store {load.title} unchanged")
            empty(source)
            shutil.rmtree(copied)

        return Command(words, KEYS, lambda: load.write(template, outbox), check)

    mine, theirs, copied = (folder / load.name / name for name in ("podferry", "s5cmd", "cp"))
    ask = [sys.executable, TRAINING, "hand-over", through.client.url, str(mine), str(through.checkpoints)]
    send = s5cmd(endpoint, "cp", f"{theirs}/", f"s3://{BUCKET}/s5cmd/")
    target = folder / "copied"
    return Contest(
        f"{load.title}: from the files being there to their commit",
        ours=taking("podferry", ask, through.checkpoints, lambda: data_folder(through.held)),
        peers={"s5cmd": taking("s5cmd", send, theirs, lambda: held / "s5cmd")},
        limit=taking("cp", ["cp", "-r", str(copied), str(target)], copied, lambda: target),
        least={"s5cmd": 1.0},
    )


def data_folder(lineage: Path) -> Path:
    """Where the data of the only checkpoint of a lineage lies that was not removed."""
    (found,) = (path for path in lineage.iterdir() if path.name != PRIVATE)
    return found


def memory(loads: Sequence[Load], folder: Path, server: tuple[str, Path]) -> Finding:
    """The worker's peak for checkpoints of several sizes, each sent by an agent that sent nothing else."""
    peaks = []
    for load in loads:
        template = make_template(folder / f"{load.name}.template", load.size)
        with agent(folder / f"agent-{load.name}", server) as sending:
            load.write(template, folder / "outbox")
            hand_over(sending.client.url, folder / "outbox", sending.checkpoints)
            peaks.append(sending.peak())
        shutil.rmtree(sending.held)
        empty(sending.checkpoints)
        template.unlink()
    found = ", ".join(f"{load.title}: {peak / MIB:.0f} MiB" for load, peak in zip(loads, peaks, strict=True))
    wanted = f"at most {CONSTANT} times as much for the last as for the first"
    return Finding("the worker's peak of resident memory", found, wanted, peaks[-1] <= CONSTANT * peaks[0])
