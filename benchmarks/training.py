"""What a trainer does, in processes of their own. All but `hand-over` print what it took, in seconds."""

from __future__ import annotations

import os
import sys
import time
import zlib
from pathlib import Path
from statistics import median

MIB = 1 << 20
AT_ONCE = 16 * MIB
"""Bytes of one write, as tensors come."""
AGAIN = 3
"""Times that a checkpoint is written in a row, over itself: the median counts."""
BATCH = 32 * MIB
"""Bytes that a step goes through: more than a core's caches hold, so that memory's speed counts as well."""


def stay_on(core: int) -> None:
    """This process has a core of its own, as far as it goes without the system's help."""
    os.sched_setaffinity(0, {core})


def write(path: Path, size: int) -> float:
    """Write a checkpoint with content of its own and close it."""
    block = bytearray(os.urandom(min(AT_ONCE, size)))
    started = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(size // len(block)):
            block[:8] = os.urandom(8)
            file.write(block)
    return time.perf_counter() - started


def steps(count: int) -> float:
    """So many steps: seconds of one."""
    batch = os.urandom(BATCH)
    zlib.crc32(batch)  # the first one also loads the pages
    started = time.perf_counter()
    for _ in range(count):
        zlib.crc32(batch)
    return (time.perf_counter() - started) / count


def train(folder: Path, size: int, saves: int, seconds: float) -> float:
    """Save an archive of so many bytes at that interval, and compute in between: seconds of a step."""
    import numpy  # noqa: PLC0415 - the others are not to wait for it

    batch, weights = os.urandom(BATCH), numpy.frombuffer(bytearray(os.urandom(size)), dtype=numpy.uint8)
    computing, count = 0.0, 0
    ends = time.perf_counter()
    for number in range(1, saves + 1):
        ends += seconds
        weights[::MIB] ^= number  # no part of the archive is as it was
        numpy.savez(folder / f"step-{number}.npz", weights=weights)
        began = now = time.perf_counter()
        while now < ends:
            zlib.crc32(batch)
            count, now = count + 1, time.perf_counter()
        computing += now - began
    return computing / count


def hand_over(agent: str, outbox: Path, checkpoints: Path) -> None:
    """Move the files of `outbox` to where the agent looks, and wait until it is durable."""
    from podferry.sidecar.control.http_client import AgentClient  # noqa: PLC0415 - the others are not to wait for it

    for path in outbox.iterdir():
        path.rename(checkpoints / path.name)
    answer = AgentClient(agent).wait_durable(600, final=True)
    if not answer.durable:
        sys.exit(f"not durable: {answer}")


def main(work: str, *words: str) -> None:
    if work == "write":
        stay_on(int(words[2]))
        print(median(write(Path(words[0]), int(words[1])) for _ in range(AGAIN)))
    elif work == "steps":
        stay_on(int(words[1]))
        print(steps(int(words[0])))
    elif work == "train":
        stay_on(int(words[4]))
        print(train(Path(words[0]), int(words[1]), int(words[2]), float(words[3])))
    else:
        hand_over(words[0], Path(words[1]), Path(words[2]))


if __name__ == "__main__":
    main(*sys.argv[1:])
