"""The end of a pod: what is durable after it, and whether the rest is named."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from agents import PATIENCE, Agent, agent
from harness import Finding
from serving import MIB
from training import write

from podferry.contract.destination.agent_notes import NOTES, decode_note
from podferry.contract.destination.commit import COMMITS, decode_commit

WORDS = "not durable at the end"
"""What the agent's log says before the names."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Checkpoints that are whole when the end comes, and what the store takes."""

    count: int
    size: int
    rate: int

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.count} x {self.size // MIB} MiB at {self.rate // MIB} MiB/s"


@dataclass(frozen=True, slots=True)
class Ended:
    """What is found after the end of an agent.

    Attributes:
        seconds: From the signal to its end.
        code: Its exit code.
        durable: Names of the checkpoints that are committed.
        noted: Names that the note at the destination gives as left behind.
        logged: The line of the log that gives them.
    """

    seconds: float
    code: int
    durable: set[str]
    noted: set[str]
    logged: str


def drain(backlog: Backlog, folder: Path, server: tuple[str, Path], grace: float) -> Finding:
    """End an agent with a backlog, by SIGTERM as Kubernetes does."""
    with agent(folder / f"grace-{grace:g}", server, limit=backlog.rate, grace=grace) as ending:
        outbox = folder / "outbox"
        outbox.mkdir()
        names = [f"step-{step}" for step in range(1, backlog.count + 1)]
        for name in names:
            write(outbox / f"{name}.bin", backlog.size)
        for name in names:  # all at once: none is durable before the end begins
            (outbox / f"{name}.bin").rename(ending.checkpoints / f"{name}.bin")
        ended = end(ending)
    for used in (outbox, ending.held, ending.checkpoints.parent):
        shutil.rmtree(used)
    left = set(names) - ended.durable
    named = left == ended.noted and all(name in ended.logged for name in left)
    newest = set(names[len(left) :]) == ended.durable
    enough = backlog.count * backlog.size / backlog.rate * 2 < grace
    return Finding(
        f"SIGTERM with {backlog.title}, grace {grace:g} s",
        f"durable: {', '.join(sorted(ended.durable)) or 'none'}; left: {', '.join(sorted(left)) or 'none'}; "
        f"named: {', '.join(sorted(ended.noted)) or 'none'}; ended after {ended.seconds:.1f} s",
        "all durable" if enough else "the newest durable, the rest named",
        named and ended.code == 0 and (not left if enough else newest and 0 < len(left) < backlog.count),
    )


def end(agent: Agent) -> Ended:
    """Send the signal, wait, and look at what is left."""
    started = time.monotonic()
    agent.embedded.run.directory.mark_ended()  # outside a pod a signal alone does not mean the end
    agent.embedded.process.send_signal(signal.SIGTERM)
    try:
        code = agent.embedded.process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        code = -1
    seconds = time.monotonic() - started
    commits = [decode_commit(path.read_bytes(), str(path)) for path in (agent.held / COMMITS).glob("*")]
    notes = [decode_note(path.read_bytes(), str(path)) for path in (agent.held / NOTES).glob("*")]
    lines = [line for line in agent.log.read_text().splitlines() if WORDS in line]
    durable, noted = {commit.name for commit in commits}, {name for note in notes for name in note.pending}
    return Ended(seconds, code, durable, noted, "\n".join(lines))
