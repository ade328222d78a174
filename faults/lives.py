"""One life of a supervisor: checkpoints are saved, and its workers are killed while they send them."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import obstore

from faults.agents import agent_command, crashes, free_port
from faults.counting import Again, Counter, sent_again
from faults.family import Family
from faults.ledger import Ledger, Violation, contents
from faults.moments import Kill, Life
from faults.oracle import Oracle
from faults.proxy import proxy
from faults.rules import Rules
from faults.scene import ROOT
from faults.store import Served
from faults.supervised import Supervised
from faults.writers.frame import Ledger as Notes
from faults.writers.frame import expected, files_below
from faults.writers.safetensors_sharded import Sharded
from podferry.sidecar.config.tuning import CheckpointSettings
from podferry.sidecar.launch.local_directories import memory_root

GLANCE = 0.01
"""Seconds between two looks at the clock while a moment is waited for."""
PATIENCE = 180.0
"""Seconds for a moment to come, and for all to become durable at the end, on a busy machine."""
LINEAGE = "kills"
PATCHED = Path(__file__).parent / "patched"


def allowed(small: int) -> int:
    """Bytes that a kill may cost: all bodies that are in flight at once.

    Args:
        small: Bytes of the small files of a checkpoint, which are noted after they have left the flight.
    """
    settings = CheckpointSettings()
    return settings.parts_in_flight * settings.part_bytes + small


def too_much(again: Mapping[int, Again], bound: int) -> Iterator[Violation]:
    """Kills that cost more than was in flight, and what was sent twice without a kill.

    Args:
        again: See `sent_again`.
        bound: Bytes that one kill may cost.
    """
    for number, found in sorted(again.items()):
        if (count := found.bytes + found.small) > (bound if number else 0):
            what = f"{count:,} bytes were sent again after kill {number}; {bound:,} may be in flight"
            yield Violation("again", what)


class Played:
    """Plays a life.

    Args:
        life: Its plan.
        agent: Runs already.
        counter: What the proxy shows what passes.
        oracle: Who judges.
        root: The checkpoint directory.
        ledger: For what was saved.
    """

    def __init__(
        self, life: Life, agent: Supervised, counter: Counter, oracle: Oracle, root: Path, ledger: Path
    ) -> None:
        self._life, self._agent, self._counter, self._oracle = life, agent, counter, oracle
        self._writer, self._notes, self._ledger = Sharded(root), Notes(ledger), Ledger(ledger)
        self._step = 0
        self._violations: list[Violation] = []
        self._struck: list[dict[str, Any]] = []

    def play(self) -> dict[str, Any]:
        """All of it; its record."""
        began = time.monotonic()
        for promise in self._run():
            self._violations.append(Violation("stuck", promise))
        self._agent.end()
        self._violations += self._oracle.look(reread=True)
        lost = self._lost()
        return self._record(lost, time.monotonic() - began)

    def _run(self) -> Iterator[str]:
        """Save, kill, and let it finish; what did not come in time."""
        if not self._agent.opens():
            yield "the gate does not open"
            return
        for kill in self._life.kills:
            if not self._struck_at(kill):
                yield f"{kill}: did not come for {PATIENCE:g} s"
        if not self._agent.durable(PATIENCE):
            yield f"not all is durable after {PATIENCE:g} s"

    def _struck_at(self, kill: Kill) -> bool:
        """Save, and wait for the moment; where too little is left for it, save once more."""
        if kill.fresh or self._all_durable():
            self._save()
        fired, deadline = self._counter.arm(kill), time.monotonic() + PATIENCE
        while not fired.wait(GLANCE):
            now = time.monotonic()
            self._counter.tick(now)
            if now > deadline:
                return False
            if self._all_durable():
                self._save()
        self._struck.append({"kind": kill.kind, "share": round(kill.share, 3), "in flight": self._cut()})
        return True

    def _cut(self) -> int:
        """Bodies that the last kill has cut off."""
        last = self._counter.epoch - 1
        return sum(not transfer.done and transfer.epoch == last for transfer in self._counter.transfers)

    def _all_durable(self) -> bool:
        return self._counter.commits >= self._step

    def _save(self) -> None:
        """One checkpoint more; those that are durable go, as rotation does it."""
        if self._all_durable():
            for step in range(1, self._step + 1):
                self._writer.forget(step)
        self._step += 1
        tensors = expected(self._life.seed, self._step, self._life.count)
        self._notes.note("begin", self._step)
        held = [files_below(paths, self._writer.root) for paths in self._writer.save(self._step, tensors)]
        self._counter.saved += sum(size for files in held for size, _ in files.values())
        self._notes.note("finish", self._step, checkpoints=held)

    def _lost(self) -> int:
        """Bytes of all saves that are not committed as they were written."""
        lost = 0
        for event in self._ledger.events():
            if event["event"] == "finish" and (found := self._oracle.claimed(event["step"], "it was saved")):
                self._violations += [Violation("lost", violation.what) for violation in found]
                lost += sum(size for held in contents(event) for size, _ in held.values())
        return lost

    def _record(self, lost: int, seconds: float) -> dict[str, Any]:
        again = sent_again(self._counter.transfers)
        small = max(
            (_small(event) for event in self._ledger.events() if event["event"] == "finish"), default=0
        )
        bound = allowed(small)
        self._violations += too_much(again, bound)
        for number, struck in enumerate(self._struck, 1):
            found = again.get(number, Again())
            struck |= {"parts again": found.parts, "bytes again": found.bytes + found.small}
        return {
            "seed": self._life.seed,
            "kills": self._struck,
            "checkpoints": self._step,
            "committed": self._oracle.commits,
            "saved": self._counter.saved,
            "sent": sum(transfer.bytes for transfer in self._counter.transfers),
            "again": sum(found.bytes + found.small for found in again.values()),
            "allowed": bound,
            "lost": lost,
            "violations": [asdict(violation) for violation in self._violations],
            "seconds": round(seconds, 1),
        }


def _small(event: Mapping[str, Any]) -> int:
    """Bytes of a save but for its largest file."""
    sizes = [size for held in contents(event) for size, _ in held.values()]
    return sum(sizes) - max(sizes)


@contextmanager
def _volume() -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="podferry-faults-", dir=memory_root()))
    try:
        (base / "checkpoints").mkdir()
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


def play(life: Life, store: Served, folder: Path, sabotage: str = "") -> dict[str, Any]:
    """One life; its record. What it has written to the store is removed again.

    Args:
        life: Its plan.
        store: Holds the checkpoints.
        folder: For log and ledger.
        sabotage: A key of `faults.sabotage.BARE`, empty where all defences stand.
    """
    family, ledger = Family(f"{os.getpid()}/kills/{life.seed}"), folder / "ledger.jsonl"
    counter = Counter(lambda: family.kill("worker"))
    lineage = f"kills-{life.seed}/{LINEAGE}"
    oracle = Oracle(store.open(), lineage, Ledger(ledger), _unknown)
    with _volume() as base, proxy(store.port, Rules(life.rate), lambda: 0, counter) as url:
        settings = {
            "checkpoints": f"s3://{store.bucket}/kills-{life.seed}",
            "checkpoint_path": str(base / "checkpoints"),
            "lineage": LINEAGE,
            "endpoint": url,
        }
        port = free_port()
        command = agent_command(settings, ["train"], base, base / "pins", port)
        environment = {**store.environment, **(_sabotaged(sabotage) if sabotage else {})}
        agent = Supervised(command, environment, folder / "agent.log", port, family)
        try:
            record = Played(life, agent, counter, oracle, base / "checkpoints", ledger).play()
        finally:
            agent.close()
            _empty(store, f"kills-{life.seed}")
    record["violations"] += map(asdict, crashes(folder / "agent.log", f"seed {life.seed}"))
    return record


def _empty(store: Served, prefix: str) -> None:
    """Remove what a life has written: two hundred kills would else fill a disk."""
    client = store.open()
    for page in obstore.list(client, prefix):
        obstore.delete(client, [meta["path"] for meta in page])


def _sabotaged(name: str) -> dict[str, str]:
    paths = [str(PATCHED), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "FAULTS_SABOTAGE": name}


def _unknown(_: Path) -> int:
    """No trainer dies here between a save and its note: what is not in the ledger was never saved."""
    raise ValueError("it was not saved")
