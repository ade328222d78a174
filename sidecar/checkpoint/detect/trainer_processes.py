"""Whether the processes of the trainer are older than a file: then none of them has been restarted since.

They are those with the checkpoint directory in their environment, whichever process has started them. A
launcher that starts the trainer again (`torchrun --max-restarts`, a loop of a shell) starts a process that is
younger than what the one before has written. So does a data loader that starts its workers: then nothing is
known.
Source: proc_pid_stat(5), field 22; proc_pid_environ(5).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from podferry.contract.http_api import CHECKPOINTS_VARIABLE

PROC = Path("/proc")
TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
MARGIN_NS = 2 * 10**7
"""Of the clocks: start times count in ticks, files' times in those of the kernel's timer."""


class TrainerProcesses:
    """The processes that have inherited one setting.

    Args:
        setting: A variable with its value, `NAME=VALUE`.
        proc: Where /proc is.
    """

    def __init__(self, setting: str, proc: Path = PROC) -> None:
        self._setting, self._proc = os.fsencode(setting), proc
        self._known: dict[tuple[str, int], bool] = {}
        self._newest_ns = 0
        self.alive: tuple[int, ...] = ()

    def look(self) -> tuple[int, ...]:
        """Look which processes live; the numbers of those, `alive`. The environment of each is read once."""
        found = {one: self._known.get(one) for one in self._all()}
        self._known = {one: self._is_own(one[0]) if own is None else own for one, own in found.items()}
        own = [one for one, is_own in self._known.items() if is_own]
        self.alive = tuple(int(number) for number, _ in own)
        booted_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self._newest_ns = max([self._newest_ns, *(booted_ns + ticks * TICK_NS for _, ticks in own)])
        return self.alive

    def all_older_than(self, at_ns: int) -> bool:
        """Whether some were seen, and none of them is younger than a time, in ns since the epoch."""
        return 0 < self._newest_ns < at_ns - MARGIN_NS

    def _all(self) -> Iterator[tuple[str, int]]:
        """Each process, but ended ones that wait for their parent, with its start in ticks since the boot."""
        for number in os.listdir(self._proc) if self._proc.is_dir() else ():  # noqa: PTH208 - for speed
            if number.isdecimal():
                with suppress(OSError, ValueError, IndexError):
                    # The name in brackets may contain anything, brackets too.
                    stat = (self._proc / number / "stat").read_bytes().rpartition(b")")[2].split()
                    if stat[0] not in {b"Z", b"X"}:
                        yield number, int(stat[19])

    def _is_own(self, number: str) -> bool:
        with suppress(OSError):
            return self._setting in (self._proc / number / "environ").read_bytes().split(b"\0")
        return False


def trainer_of(checkpoints: Path | str) -> TrainerProcesses:
    """The processes of the trainer that `podferry run` has given this checkpoint directory."""
    return TrainerProcesses(f"{CHECKPOINTS_VARIABLE}={checkpoints}")
