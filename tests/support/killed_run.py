"""A run of `podferry run` that is killed with its agent, so that it leaves its directories."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from podferry.sidecar.launch.leftovers import find_leftovers

SAVE = """
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
(folder / "epoch-1.bin").write_bytes(b"one")
if sys.argv[1] == "durable":
    while not pathlib.Path(sys.argv[3]).exists():
        time.sleep(0.01)
    (folder / "epoch-2.bin.tmp").write_bytes(b"two")
    (folder / "epoch-2.bin.tmp").rename(folder / "epoch-2.bin")
pathlib.Path(sys.argv[2]).write_text(str(folder))
time.sleep(60)
"""
MARK = "KILLED_RUN"


def killed_run(folder: Path, *options: str, wait: str = "at once") -> str:
    """Kill a run that has saved, command and agent alike; its id.

    Args:
        folder: Holds its destination, `destination`; the lineage is `t`.
        options: More of them.
        wait: "durable" saves another checkpoint after the first one is durable.
    """
    saved, latest = folder / "saved", folder / "destination/t/.podferry/latest.json"
    run = [sys.executable, "-m", "podferry.cli.main", "run", "--lineage", "t", *options]
    run += ["--checkpoints", str(folder / "destination")]
    trainer = [sys.executable, "-c", SAVE, wait, str(saved), str(latest)]
    environment = {**os.environ, MARK: str(folder)}
    with subprocess.Popen([*run, "--", *trainer], env=environment, stderr=subprocess.DEVNULL):
        while not saved.exists() or not saved.read_text():
            time.sleep(0.005)
        while pids := _family(folder):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
    (own,) = [one for one in find_leftovers().leftovers if one.checkpoints == saved.read_text()]
    return own.id


def _family(folder: Path) -> list[int]:
    """All that is left of it, the oldest first: nothing may have time to react."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            if f"{MARK}={folder}\0".encode() in (process / "environ").read_bytes() and state != "Z":
                found.append(int(process.name))
    return sorted(found)
