"""A real `podferry run` whose processes are killed in a phase, and what became of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import obstore

from faults.family import MARK
from faults.messages import Head
from faults.proxy import proxy
from faults.rules import Rules
from faults.store import Served
from faults.wire import Seen

COMMAND, SUPERVISOR, WORKER, TRAINER = "command", "supervisor", "worker", "trainer"
VICTIMS: Mapping[str, Sequence[str]] = {
    "trainer": (TRAINER,),
    "worker": (WORKER,),
    "supervisor": (SUPERVISOR,),
    "both": (SUPERVISOR, WORKER),
    "command": (COMMAND,),
    "all three": (SUPERVISOR, WORKER, COMMAND),
}
"""Who is killed, by the row of the table; `both` are supervisor and worker."""
PREFETCH, TRAINING, END = PHASES = ("prefetch", "training", "the end")
OBJECTS, OBJECT_BYTES = 12, 128 << 10
PATIENCE = 120.0
"""Seconds for a phase to come, and for all processes to end, on a busy machine."""
SUCCESS = (0, 76)
"""Exit codes that call everything durable."""
TRAIN = """
import os, pathlib, signal, sys, time
folder, place = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"]), pathlib.Path(sys.argv[1])
def save(name):
    part = folder / f"{name}.bin.tmp"
    part.write_bytes(name.encode() * 1000)
    part.rename(folder / f"{name}.bin")
    with (place / "saved").open("a") as ledger:
        ledger.write(f"{name}\\n")
def end(*_):
    time.sleep(0.5)
    save("epoch-9")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
assert len(list(pathlib.Path(os.environ["PODFERRY_DATASET"]).iterdir())) == int(sys.argv[2])
save("epoch-1")
(place / "ready").touch()
while sys.argv[3] == "training" and not (place / "go").exists():
    time.sleep(0.01)
save("epoch-2")
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of one run.

    Attributes:
        victim, phase: Who was killed when.
        code: The run's exit code; negative after a signal.
        saved: Checkpoints that the trainer has finished.
        durable: Those that are committed with all their bytes.
        named: Those that the run or `leftovers ls` calls not durable.
        left: Whether directories stay; they are uploaded then.
        rescued: Those that are durable after `leftovers upload`.
    """

    victim: str
    phase: str
    code: int
    saved: tuple[str, ...]
    durable: tuple[str, ...]
    named: tuple[str, ...]
    left: bool
    rescued: tuple[str, ...]

    @property
    def silent(self) -> tuple[str, ...]:
        """What was lost in silence, or called durable and is not."""
        missing = set(self.saved) - set(self.durable)
        unnamed = missing - set(self.named)
        wrong = missing if self.code in SUCCESS else set()
        return tuple(sorted(unnamed | wrong | (missing - set(self.rescued))))


class Run:
    """One run, and the hand that kills its processes.

    Args:
        store: Has the dataset, and gets the checkpoints.
        folder: For logs and the trainer's notes.
        victim, phase: Who is killed when.
    """

    def __init__(self, store: Served, folder: Path, victim: str, phase: str) -> None:
        self._store, self._folder, self._victim, self._phase = store, folder, victim, phase
        self._mark = f"{os.getpid()}/run-kills/{victim}/{phase}"
        self._prefix = f"run-kills/{victim}-{phase}".replace(" ", "-")
        self._log = folder / "run.log"
        self._struck = False
        self._requests = 0

    def play(self) -> Cell:
        """All of it; what became of it."""
        client = self._store.open()
        for number in range(OBJECTS):
            obstore.put(client, f"{self._prefix}/data/{number}", bytes(OBJECT_BYTES))
        (self._folder / "train.py").write_text(TRAIN)
        with proxy(self._store.port, Rules(64 << 20), lambda: 0, self._watch) as url:
            return self._judge(self._run(url), url)

    def _run(self, url: str) -> int:
        """Run and kill; the exit code, once all processes have ended."""
        command, environment = self._command(url), self._environment()
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True
            )
            if self._phase == TRAINING:
                self._until((self._folder / "ready").exists)
                self._strike()
                if COMMAND not in VICTIMS[self._victim]:  # otherwise SIGTERM ends the trainer
                    (self._folder / "go").touch()
            self._until(lambda: process.poll() is not None)
            self._until(lambda: not self._processes())
        return process.returncode

    def _command(self, url: str) -> list[str]:
        place = f"s3://{self._store.bucket}/{self._prefix}"
        options = ["--dataset", f"{place}/data", "--checkpoints", f"{place}/to", "--lineage", "t"]
        words = [sys.executable, "-m", "podferry.cli.main", "run", *options, "--endpoint", url, "--"]
        return [
            *words,
            sys.executable,
            *map(str, (self._folder / "train.py", self._folder, OBJECTS, self._phase)),
        ]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self._store.environment, MARK: self._mark}

    def _watch(self, request: Head) -> Seen:
        """Strike at the third object of the dataset, or when the last checkpoint is about to be committed."""
        path = request.target.partition("?")[0]
        if self._phase == PREFETCH and request.method == "GET" and f"{self._prefix}/data/" in path:
            self._requests += 1
            if self._requests == 3:
                self._strike()
        last = "/.podferry/commits/" in path and request.method == "PUT" and self._saved() == 2
        if self._phase == END and last and not self._struck:
            self._until(lambda: TRAINER not in self._processes())
            self._strike()
        return Seen(request)

    def _strike(self) -> None:
        """Kill at once, so that nobody has time to react to another's end."""
        self._struck = True
        found = self._processes()
        for role in VICTIMS[self._victim]:
            with contextlib.suppress(ProcessLookupError, KeyError):
                os.kill(found[role], signal.SIGKILL)

    def _processes(self) -> dict[str, int]:
        """The processes that live, by their role; of a worker and those that it has forked, the worker."""
        roles: dict[str, int] = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                state = (process / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and f"{MARK}={self._mark}\0".encode() in (process / "environ").read_bytes():
                    role = _role((process / "cmdline").read_bytes().decode().split("\0"))
                    roles[role] = min(int(process.name), roles.get(role, sys.maxsize))
        return roles

    def _saved(self) -> int:
        ledger = self._folder / "saved"
        return len(ledger.read_text().split()) if ledger.exists() else 0

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self._victim}, {self._phase}: waited in vain\n{self._log.read_text()}")
            time.sleep(0.02)

    def _judge(self, code: int, url: str) -> Cell:
        ledger = self._folder / "saved"
        saved = tuple(ledger.read_text().split()) if ledger.exists() else ()
        durable, said = self._durable(saved), self._log.read_text(errors="replace")
        lines = [line for line in said.splitlines() if "not durable" in line]
        left = self._leftover()
        listed = left["not_durable"] if left is not None else []
        named = tuple(name for name in saved if name in listed or any(name in line for line in lines))
        if left is not None:
            verb = "upload" if left["trained"] else "rm"
            self._podferry("leftovers", verb, left["id"], *(["--yes"] if verb == "rm" else []))
        rescued = self._durable(saved)
        return Cell(self._victim, self._phase, code, saved, durable, named, left is not None, rescued)

    def _durable(self, saved: Sequence[str]) -> tuple[str, ...]:
        """The checkpoints with a commit and all their bytes, read with none of podferry's own code."""
        client, base, found = self._store.open(), f"{self._prefix}/to/t", set()
        for page in obstore.list(client, f"{base}/.podferry/commits"):
            for one in page:
                commit, _ = json.JSONDecoder().raw_decode(
                    bytes(obstore.get(client, one["path"]).bytes()).decode()
                )
                (file,) = commit["files"]
                path = f"{base}/{file.get('folder') or commit['checkpoint']}/{file['name']}"
                if bytes(obstore.get(client, path).bytes()) == commit["name"].encode() * 1000:
                    found.add(commit["name"])
        return tuple(name for name in saved if name in found)

    def _leftover(self) -> dict[str, Any] | None:
        found: list[dict[str, Any]] = json.loads(self._podferry("leftovers", "ls", "-o", "json"))
        return next((one for one in found if self._prefix in str(one["destination"])), None)

    def _podferry(self, *words: object) -> str:
        command = [sys.executable, "-m", "podferry.cli.main", *map(str, words)]
        done = subprocess.run(
            command, env=self._environment(), capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        return done.stdout


def _role(words: Sequence[str]) -> str:
    if "--worker" in words:
        return WORKER
    if "agent" in words[:4]:
        return SUPERVISOR
    return COMMAND if "run" in words[:4] else TRAINER
