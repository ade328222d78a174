"""Holders under a benchmark: `podferry cache serve` as processes.

    holders.py URI FOLDER ENDPOINT COUNT

As a program: fills so many holders, each on a core of its own, and prints the seconds until all are complete.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from peers import OURS_PROGRAM
from serving import real_servers

PATIENCE = 300.0
"""Seconds for whatever is waited for."""
EVERY = 0.01
"""Seconds between two looks at a holder that fills."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A holder that runs.

    Attributes:
        url: Where it serves.
        root: Where its files are.
        process: Its process.
        log: What it says.
        started: When, on the clock of `time.perf_counter`.
    """

    url: str
    root: Path
    process: subprocess.Popen[bytes]
    log: Path
    started: float

    def wait_until_complete(self) -> float:
        """Seconds from its start until it served the dataset.

        Raises:
            RuntimeError: It never does; with the end of its log.
        """
        while not self.is_complete():
            if self.process.poll() is not None or time.perf_counter() - self.started > PATIENCE:
                raise RuntimeError(f"a holder does not fill:\n{self.log.read_text()[-2000:]}")
            time.sleep(EVERY)
        return time.perf_counter() - self.started

    def is_complete(self) -> bool:
        """Whether it serves the dataset."""
        return b"dataset complete" in self.log.read_bytes()


def holder_words(uri: str, root: Path, port: int, endpoint: str, *options: str) -> list[str]:
    """The command of a holder."""
    return [
        *(OURS_PROGRAM, "cache", "serve", uri, str(root), f"--port={port}", f"--endpoint={endpoint}"),
        *options,
    ]


@contextmanager
def running(words: Sequence[str], root: Path, port: int) -> Iterator[Holder]:
    """A holder from its start to its end; its files and records are removed then.

    Args:
        words: Its command.
        root: Where it keeps its files.
        port: Where it serves.
    """
    log = root.with_name(f"{root.name}.log")
    started = time.perf_counter()
    with log.open("wb") as file:
        process = subprocess.Popen(words, stdout=file, stderr=file, start_new_session=True)
    try:
        yield Holder(f"http://127.0.0.1:{port}", root, process, log, started)
    finally:
        process.terminate()
        process.wait(PATIENCE)
        for path in (root, root.with_name(f"{root.name}.podferry")):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def holders(
    endpoint: str, uri: str, folder: Path, count: int = 1, *, apart: bool = False
) -> Iterator[list[Holder]]:
    """Holders of one dataset that are each other's peers.

    Args:
        endpoint: Of the source.
        uri: The dataset.
        folder: Each has a directory there.
        count: How many.
        apart: Each on a core of its own, as on a node of its own.
    """
    ports = [real_servers.free_port() for _ in range(count)]
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        found = []
        for number, port in enumerate(ports):
            root = folder / f"held-{number}"
            others = [f"--peer=http://127.0.0.1:{other}" for other in ports if other != port]
            words = holder_words(uri, root, port, endpoint, *others)
            pinned = ["taskset", "-c", str(cores[number % len(cores)])] if apart else []
            found.append(stack.enter_context(running([*pinned, *words], root, port)))
        yield found


def main(uri: str, folder: str, endpoint: str, count: str) -> int:
    Path(folder).mkdir()
    try:
        with holders(endpoint, uri, Path(folder), int(count), apart=True) as found:
            started = found[0].started
            for one in found:
                one.wait_until_complete()
            print(time.perf_counter() - started)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
