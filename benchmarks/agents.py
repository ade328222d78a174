"""Agents under a benchmark: started as `podferry run` starts them, with a log that can be read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from serving import BUCKET

from podferry.contract.status import CheckpointStatus
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.launch.launch_options import LaunchOptions
from podferry.sidecar.launch.local_agent import LocalAgent, launch

PATIENCE = 300.0
"""Seconds for whatever is waited for."""
GENTLE = 10
"""The agent's nice value next to a trainer: 110 to 1024, about a sidecar's 100m of CPU to a trainer's 1."""
LINEAGE = "trained"
LOG = "agent.log"


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that waits for checkpoints.

    Attributes:
        embedded: Its process.
        checkpoints: Where it looks.
        held: Where its server keeps the lineage.
        log: What it says.
        worker: Its worker's process.
    """

    embedded: LocalAgent
    checkpoints: Path
    held: Path
    log: Path
    worker: int

    @property
    def client(self) -> AgentClient:
        """Asks it."""
        return self.embedded.client

    def status(self) -> CheckpointStatus:
        """Its checkpoints so far."""
        status = self.client.status().checkpoints
        assert status is not None  # noqa: S101 - every agent here has a destination
        return status

    def peak(self) -> int:
        """Bytes of the most memory that the worker has had."""
        lines = Path(f"/proc/{self.worker}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

    def cpu(self) -> float:
        """Seconds of CPU time of all its processes so far."""
        return sum(map(_cpu, _family(self.embedded.process.pid)))

    def wait_until(self, fits: Callable[[CheckpointStatus], bool]) -> None:
        """Ask until the answer fits.

        Raises:
            RuntimeError: It never does; with the end of the log.
        """
        deadline = time.monotonic() + PATIENCE
        while not fits(status := self.status()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited in vain: {status}\n{self.log.read_text()[-2000:]}")
            time.sleep(0.02)


@contextmanager
def agent(
    folder: Path, server: tuple[str, Path], *, limit: int | None = None, grace: float = 30.0, nice: int = 0
) -> Iterator[Agent]:
    """An agent with a directory of its own in `folder`, and a lineage of its own at the server.

    Args:
        folder: Is made.
        server: Its endpoint, and where it keeps the objects.
        limit: Bytes a second that an upload may take.
        grace: Seconds that a drain may take.
        nice: Of the agent.
    """
    endpoint, held = server
    checkpoints, log = folder / "checkpoints", folder / LOG
    checkpoints.mkdir(parents=True)
    options = {
        "checkpoints": f"s3://{BUCKET}/{folder.name}",
        "checkpoint_path": checkpoints,
        "lineage": LINEAGE,
        "endpoint": endpoint,
        "upload_limit": limit,
    }
    with _errors_to(log):
        embedded = launch(options, ["benchmark"], LaunchOptions(grace_seconds=grace))
    try:
        try:
            wait_at_gate(embedded)
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{log.read_text()[-2000:]}") from None
        (worker,) = _children(embedded.process.pid)
        _be_nice(worker, nice)
        yield Agent(embedded, checkpoints, held / folder.name / LINEAGE, log, worker)
    finally:
        embedded.stop()


def wait_at_gate(embedded: LocalAgent) -> None:
    """Wait until its gate is open.

    Raises:
        RuntimeError: It is refused.
    """
    gate = embedded.client.wait_for_gate()
    if not gate.open:
        raise RuntimeError(f"the gate is refused: {gate.problems}")


@contextmanager
def staged(uri: str, stage: Path, endpoint: str) -> Iterator[LocalAgent]:
    """An agent that has staged a dataset: its gate is open."""
    options = {"dataset": uri, "dataset_path": stage, "endpoint": endpoint}
    embedded = launch(options, ["benchmark"], LaunchOptions(log_level="warning"))
    try:
        wait_at_gate(embedded)
        yield embedded
    finally:
        embedded.stop()


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """What starts meanwhile writes its standard error there."""
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _family(process: int) -> list[int]:
    """It and what it has started, recursively."""
    return [process, *(one for child in _children(process) for one in _family(child))]


def _cpu(process: int) -> float:
    """Of a process and of its children that have ended: utime to cstime of proc_pid_stat(5)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _be_nice(process: int, nice: int) -> None:
    """Every thread, and the session: Linux weighs sessions against each other where it groups by them.

    Source: sched(7), "The autogroup feature".
    """
    if not nice:
        return
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.setpriority(os.PRIO_PROCESS, int(thread.name), nice)
    grouped = Path(f"/proc/{process}/autogroup")
    if grouped.exists():
        grouped.write_text(str(nice))


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """What starts meanwhile stays on these cores; all of them where there are none to choose."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
