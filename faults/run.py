"""A whole fault run: seed after seed, two at a time, each with a record of its own."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.episode import Episode
from faults.ledger import Ledger
from faults.log import Log
from faults.oracle import Oracle
from faults.outcome import keep
from faults.plan import Plan, plan
from faults.pod import LINEAGE
from faults.proxy import proxy
from faults.rules import Rules
from faults.sabotage import SABOTAGES
from faults.scene import Scene, loader
from faults.store import Served

Record = Mapping[str, Any]
"""What became of an episode, as `Outcome.record` has it."""
PROOFS = 10**6
"""First seed of the episodes that take a defence out: far from those of a run."""
TRIES, TRY_APART = 5, 1000
"""Episodes that a lack has to be noticed in, and how far apart their seeds are."""
QUIET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "HF_HUB_OFFLINE": "1",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
    "TQDM_DISABLE": "1",
}
"""What keeps the libraries to one core, and from looking for what is not there."""


@dataclass(frozen=True, slots=True)
class Run:
    """Where episodes are played.

    Attributes:
        store: Holds the checkpoints.
        pythons: The interpreter of each writer.
        build: Directory of the records.
        jobs: Episodes at once.
        log: Has what earlier runs did and gets what this one does; None for files below `build` alone.
        keep: Whether logs and ledgers stay where all was well, too.
        stop: Ends the episodes that are under way.
    """

    store: Served
    pythons: Mapping[str, Path]
    build: Path
    jobs: int = 2
    keep: bool = False
    log: Log | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def play(self, made: Plan, sabotage: str = "") -> Record:
        """One episode; its record.

        Args:
            made: Its plan.
            sabotage: A key of `SABOTAGES`, empty where all defences stand.
        """
        name = sabotage or str(made.seed)
        folder = (self.build / f"{name}.kept").resolve()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        rules, ledger = Rules(made.rate), Ledger(folder / "ledger.jsonl")
        environment = {**self.store.environment, **QUIET}
        if sabotage:
            environment["FAULTS_SABOTAGE"] = sabotage
        with proxy(self.store.port, rules, lambda: ledger.count("finish")) as url:
            place = f"s3://{self.store.bucket}/{made.seed}"
            scene = Scene(made, self.pythons[made.writer], place, url, environment, folder, self.stop)
            oracle = Oracle(self.store.open(), f"{made.seed}/{LINEAGE}", ledger, loader(scene))
            outcome = Episode(scene, rules, oracle, checks=self.store.checks).play()
        keep(outcome, self.store.name, self.build / f"{name}.json")
        if not outcome.violations and not self.keep:
            shutil.rmtree(folder)
        return outcome.record(self.store.name)

    @contextmanager
    def _pool(self) -> Iterator[ThreadPoolExecutor]:
        """Threads for episodes; whatever ends the block ends them."""
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                yield pool
            except BaseException:
                self.stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    def seeds(self, first: int, faults: int, say: Callable[[Record], None]) -> list[Record]:
        """Play seeds until there have been enough faults.

        Args:
            first: The first seed; those that have a record are not played again.
            faults: How many, those of earlier records included.
            say: Called with each new record.

        Returns:
            The records of these seeds, in their order; with a log, all that are in it.
        """
        records: list[Record] = []
        running: set[Future[Record]] = set()
        seed = first
        with self._pool() as pool:
            while True:
                while len(running) < self.jobs and _faults(records) < faults:
                    known = self._known(seed)
                    if known is not None:
                        records.append(known)
                    else:
                        running.add(pool.submit(self.play, plan(seed, list(self.pythons))))
                    seed += 1
                if not running:
                    found = self.log.records.values() if self.log is not None else records
                    return sorted(found, key=lambda record: int(record["seed"]))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    records.append(future.result())
                    if self.log is not None:
                        self.log.add(records[-1])
                    say(records[-1])

    def _known(self, seed: int) -> Record | None:
        """What became of a seed before, None if it is to be played."""
        if self.log is not None:
            return self.log.records.get(seed)
        file = self.build / f"{seed}.json"
        return json.loads(file.read_text()) if file.exists() else None

    def prove(self, say: Callable[[str, Record], None]) -> None:
        """Remove each safeguard in turn and report what the oracle found."""
        with self._pool() as pool:
            playing = {
                name: pool.submit(self._proof, name, number)
                for number, (name, sabotage) in enumerate(SABOTAGES.items(), PROOFS)
                if sabotage.writer in self.pythons
            }
            for name, future in playing.items():
                say(name, future.result())

    def _proof(self, name: str, seed: int) -> Record:
        """An episode without a safeguard that shows its lack, or the last of some.

        What a kill leaves depends on how far the save and the agent are, so not every episode shows it.
        """
        sabotage = SABOTAGES[name]
        record: Record = {}
        for number in range(seed, seed + TRIES * TRY_APART, TRY_APART):
            record = self.play(sabotage.plan(number), name)
            if any(one["figure"] == sabotage.figure for one in record["violations"]):
                break
        return record


def _faults(records: list[Record]) -> int:
    return sum(sum(record["fired"].values()) for record in records)
