"""What all trainers share: the loop over steps, a content that certifies itself, and the ledger.

Every tensor follows from (seed, step) alone, so the reader of a checkpoint can check whether it is one
that was really written. What was begun and what was finished stands in a ledger outside of the checkpoint
directory, with digests; the oracle reads it. Runs under the Python of the library, on the standard library
and NumPy.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import random
import sys
import time
import traceback
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Tensors = dict[str, Any]
"""NumPy arrays by name."""

SMALL = 64
"""Elements of the tensors other than the large one."""
FIRST_SAVE = 0.02
"""Seconds that a first save is expected to take."""
EXIT_BROKEN = 3
"""Exit code where what was restored cannot be resumed from."""
SIGKILL, SIGEV_SIGNAL, CLOCK_MONOTONIC = 9, 0, 1


class Writer(ABC):
    """One library's way to save and to find what to resume from."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @abstractmethod
    def save(self, step: int, tensors: Tensors) -> Iterable[Iterable[Path]]:
        """Write what belongs to a step: the files or directories of each checkpoint, pointers included."""

    @abstractmethod
    def load(self) -> tuple[int, Tensors] | None:
        """Resume as the library's users do: step and tensors, or None."""

    @abstractmethod
    def forget(self, step: int) -> None:
        """Remove the checkpoint of a step, as rotation does; one that is overwritten in place stays."""


def expected(seed: int, step: int, count: int) -> Tensors:
    """The tensors of a step; `count` elements of 4 bytes in the large one."""
    made = np.random.default_rng([seed, step])
    small = {f"layer{index}": made.random(SMALL, dtype=np.float32) for index in range(3)}
    return {**small, "weight": made.random(count, dtype=np.float32)}


def differs(found: Mapping[str, Any], wanted: Tensors) -> str | None:
    """The name of a tensor that is not as it was written, None where all are."""
    for name, tensor in wanted.items():
        if name not in found or not np.array_equal(np.asarray(found[name]), tensor):
            return name
    return None


def files_below(paths: Iterable[Path], root: Path) -> dict[str, tuple[int, str]]:
    """Size and SHA-256 of each file, by its name relative to `root`; directories stand for all in them."""
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*")))]
    return {
        file.relative_to(root).as_posix(): (
            file.stat().st_size,
            hashlib.sha256(file.read_bytes()).hexdigest(),
        )
        for file in files
        if file.is_file()
    }


class Ledger:
    """What a trainer did, a JSON line each; a kill leaves whole lines."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, event: str, step: int | None, **more: Any) -> None:
        """Append one line."""
        line = json.dumps({"event": event, "step": step, "at": time.time(), **more})
        os.write(self._file, line.encode() + b"\n")


class Trainer:
    """Drives one writer through its steps."""

    def __init__(self, writer: Writer, given: argparse.Namespace) -> None:
        self.writer, self.given = writer, given
        self.ledger = Ledger(given.ledger)
        self._took, self._saves = FIRST_SAVE, 0

    def resume(self) -> int:
        """Load what was restored and look whether it is what was written; the next step.

        Raises:
            SystemExit: It cannot be loaded, or is something else.
        """
        restored = os.environ.get("PODFERRY_RESTORED")
        try:
            found = self.writer.load()
        except Exception as error:  # noqa: BLE001 - whatever it is, training cannot resume from this
            traceback.print_exc()
            self.ledger.note("broken", None, restored=restored, why=repr(error))
            sys.exit(EXIT_BROKEN)
        if found is None:
            self.ledger.note("resumed", None, restored=restored)
            return 1
        step, tensors = found
        wrong = differs(tensors, expected(self.given.seed, step, self.given.count))
        self.ledger.note("broken" if wrong else "resumed", step, restored=restored, why=wrong)
        if wrong:
            sys.exit(EXIT_BROKEN)
        return step + 1

    def run(self) -> None:
        """Resume and train to the end."""
        for step in range(self.resume(), self.given.steps + 1):
            moods = random.Random(f"{self.given.seed} {step}")  # noqa: S311 - a plan, no secret
            tensors = expected(self.given.seed, step, self.given.count)
            self.begin(step)
            self.finish(step, self.writer.save(step, tensors))
            if self.given.rotate and step > self.given.rotate:
                self.writer.forget(step - self.given.rotate)
            if moods.random() < self.given.asks:
                self.ask(step)
            time.sleep(moods.uniform(0.1, self.given.pace))

    def begin(self, step: int) -> None:
        """Note that a save begins; if it is to be torn, ask the kernel to kill during it."""
        self.ledger.note("begin", step)
        self._began = time.monotonic()
        self._saves += 1
        if self._saves == self.given.die_in:
            self.ledger.note("dies", step)
            kill_after(self.given.die_part * self._took)

    def finish(self, step: int, checkpoints: Iterable[Iterable[Path]]) -> None:
        """Note what a save has left."""
        written = [list(paths) for paths in checkpoints]
        self._took = time.monotonic() - self._began
        found = [files_below(paths, self.writer.root) for paths in written]
        self.ledger.note("finish", step, checkpoints=found)

    def ask(self, step: int) -> None:
        """Wait a moment for durability, as a trainer may, and note what the agent says."""
        url = f"{os.environ.get('PODFERRY_AGENT', '')}/v1/durable?wait=4"
        asked = time.time()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=8) as answer:  # noqa: S310 - the agent's own address
                durable = json.load(answer)["durable"]
        except (OSError, ValueError):
            return  # its agent is dead, or there is none: it knows nothing
        if durable:
            self.ledger.note("durable", step, asked=asked)


def kill_after(seconds: float) -> None:
    """Have the kernel send SIGKILL to this process, also while a library holds the interpreter's lock."""

    class Event(ctypes.Structure):
        _fields_ = (
            ("value", ctypes.c_void_p),
            ("signo", ctypes.c_int),
            ("notify", ctypes.c_int),
            ("pad", ctypes.c_char * 48),
        )

    timer = ctypes.c_void_p()
    event = Event(None, SIGKILL, SIGEV_SIGNAL)
    library = ctypes.CDLL("librt.so.1", use_errno=True)
    if library.timer_create(CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)):
        raise OSError(ctypes.get_errno(), "timer_create")
    whole, part = divmod(max(seconds, 1e-6), 1)
    times = (ctypes.c_long * 4)(0, 0, int(whole), int(part * 1e9))
    if library.timer_settime(timer, 0, times, None):
        raise OSError(ctypes.get_errno(), "timer_settime")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line of a trainer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", type=Path, help="load the checkpoint in this directory and print its step")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--count", type=int, required=True, help="elements of the large tensor")
    parser.add_argument("--ledger", type=Path, default=Path(os.devnull))
    parser.add_argument("--rotate", type=int, default=0, help="steps that are kept; 0 keeps all")
    parser.add_argument("--pace", type=float, default=1.0, help="seconds between two saves, at most")
    parser.add_argument(
        "--asks", type=float, default=0.0, help="share of the saves whose durability is asked for"
    )
    parser.add_argument(
        "--die-in", type=int, default=0, help="which of its saves is torn by a kill; 0 is none"
    )
    parser.add_argument("--die-part", type=float, default=0.5, help="where in it, as a share of the last one")
    return parser.parse_args(arguments)


def main(make: type[Writer]) -> None:
    """A trainer's program; with `--check`, print the step of what can be loaded or fail."""
    given = parse()
    if given.check is None:
        Trainer(make(Path(os.environ["PODFERRY_CHECKPOINTS"])), given).run()
        return
    found = make(given.check).load()
    if found is None:
        sys.exit("there is nothing to load")
    wrong = differs(found[1], expected(given.seed, found[0], given.count))
    if wrong:
        sys.exit(f"{wrong} is not as it was written")
    print(found[0])
