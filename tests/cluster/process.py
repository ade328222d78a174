"""Running, identifying and ending processes, so that none is left and no foreign one is killed."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from tests.cluster.files import say, write_atomically

T = TypeVar("T")

# Every process of a cluster has this variable, and its value is the cluster's state directory: so a
# process is found again even if the harness was killed before it could write down what it started.
OWNER = "PODFERRY_CLUSTER_OWNER"

# CAGE ends the command with its parent, and with it all that the command started and mounted: a harness
# that is killed leaves neither a process nor a mount behind.
DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
_OWN_NAMESPACES = ("--mount", "--propagation", "private", "--pid", "--mount-proc")
CAGE = (*DIES_WITH_PARENT, "unshare", *_OWN_NAMESPACES, "--fork", "--kill-child=KILL", "--")


PATIENCE = 5
"""Limits are what a quiet machine needs, times this: one that others use too needs more. They only cost time
where something is broken."""
PROGRESS_SECONDS = 60.0
"""How often a long command reports that it still runs."""


class ClusterError(Exception):
    """The cluster cannot do what was asked. The text says what is wrong and what helps."""


@dataclass(frozen=True)
class ProcessId:
    """A process beyond doubt: numbers are reused, but not with the same start time in the same boot.

    Attributes:
        pid: The number.
        started: Clock ticks from the boot to the start (proc(5), field 22 of `stat`).
        boot: The kernel's random name of this boot.
    """

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """The process that has this number now, or None if there is none, or a zombie."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The command's name may hold spaces and brackets: what follows its last bracket does not.
        state, *fields = stat.rpartition(")")[2].split()
        return None if state in "ZX" else cls(pid, int(fields[18]), _boot())

    @classmethod
    def load(cls, path: Path) -> ProcessId | None:
        """What `save` wrote; None if it has not, or was killed before."""
        try:
            return cls(**json.loads(path.read_text()))
        except FileNotFoundError:
            return None

    def save(self, path: Path) -> None:
        """Write this to `path` atomically."""
        write_atomically(path, json.dumps(asdict(self)))

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return ProcessId.of(self.pid) == self

    @property
    def words(self) -> list[str]:
        """Its command line; one empty word if it has ended."""
        try:
            return os.fsdecode(Path(f"/proc/{self.pid}/cmdline").read_bytes()).split("\0")
        except OSError:
            return [""]

    @property
    def program(self) -> str:
        """The name of its program; empty if it has ended."""
        return Path(self.words[0]).name

    def kill(self, timeout: float = 20.0) -> None:
        """SIGKILL and wait until the process is gone. Another one of the same number is left alone."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if not self.alive:  # asked after opening: the handle cannot change hands any more
                return
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            if not poll.poll(patient(timeout) * 1000):
                raise ClusterError(f"process {self.pid} has not ended {patient(timeout):.0f} s after SIGKILL")
        finally:
            os.close(handle)


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def owned(owner: str) -> list[ProcessId]:
    """Every process that `owner`'s cluster started, this one excepted."""
    mark = f"{OWNER}={owner}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:  # it has ended meanwhile, or belongs to a user whose processes are not ours
            continue
        if mark in environment.split(b"\0") and (process := ProcessId.of(int(entry.name))):
            found.append(process)
    return found


def patient(seconds: float) -> float:
    """The limit for something that takes at most `seconds` on a quiet machine."""
    return seconds * PATIENCE


def run(
    command: Sequence[str],
    *,
    stdin: str | None = None,
    timeout: float = 60.0,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    progress: str = "",
) -> str:
    """Run a command to its end and return its standard output.

    Args:
        timeout: Seconds that it takes at most on a quiet machine; it is killed later, see `PATIENCE`.
        environment: Variables in addition to this process's.
        progress: What it does, in words, to report every minute while it runs.

    Raises:
        ClusterError: It failed or took too long; with the end of its output.
    """
    try:
        with _reporting(progress):
            done = subprocess.run(
                command,
                input=stdin,
                stdin=None if stdin is not None else subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=patient(timeout),
                check=True,
                env=os.environ | dict(environment or {}),
                cwd=cwd,
            )
    except subprocess.CalledProcessError as error:
        output = tail(f"{error.stdout}{error.stderr}")
        raise ClusterError(f"{_shown(command)}: exit status {error.returncode}\n{output}") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{_shown(command)}: not done after {patient(timeout):.0f} s") from error
    except FileNotFoundError as error:
        raise ClusterError(f"{command[0]} is not installed, or not on PATH") from error
    return done.stdout


@contextlib.contextmanager
def _reporting(what: str) -> Iterator[None]:
    """Report every minute of the block how long it has run."""
    began, ended = time.monotonic(), threading.Event()

    def report() -> None:
        while not ended.wait(PROGRESS_SECONDS):
            say(f"{what}: {(time.monotonic() - began) / 60:.0f} min so far")

    thread = threading.Thread(target=report, daemon=True)
    if what:
        thread.start()
    try:
        yield
    finally:
        ended.set()


def answers(command: Sequence[str], timeout: float = 10.0) -> bool:
    """Whether a command exists and succeeds."""
    try:
        run(command, timeout=timeout)
    except ClusterError:
        return False
    return True


def _shown(command: Sequence[str]) -> str:
    """The command for messages: without the cage, shortened."""
    words = tuple(command)
    bare = words[len(CAGE) :] if words[: len(CAGE)] == CAGE else words
    return " ".join(bare[:8])


def tail(text: str, lines: int = 25) -> str:
    """The end of a log, indented."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines()[-lines:])


def wait_until(what: str, probe: Callable[[], T | None], timeout: float, interval: float = 0.1) -> T:
    """Call `probe` until it returns something true.

    Args:
        what: Completes "gave up waiting for …".
        probe: Called every `interval` seconds; None or anything false means "not yet".
        timeout: Seconds that it takes at most on a quiet machine; see `PATIENCE`.

    Raises:
        ClusterError: It did not in time.
    """
    deadline = time.monotonic() + patient(timeout)
    while True:
        if found := probe():
            return found
        if time.monotonic() > deadline:
            raise ClusterError(f"gave up waiting for {what} after {patient(timeout):.0f} s")
        time.sleep(interval)
