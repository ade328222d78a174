"""The processes of one pod, known by a mark in their environment, and the hand that kills them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = "FAULTS_POD"
"""Variable by which a pod's processes are known, also when their parent has been killed."""


@dataclass(frozen=True, slots=True)
class Family:
    """Processes that belong together.

    Attributes:
        mark: The variable's value.
    """

    mark: str

    @property
    def environment(self) -> dict[str, str]:
        """What makes a process one of them, and all that it starts."""
        return {MARK: self.mark}

    def find(self) -> dict[str, int]:
        """The processes by their role: launcher, supervisor, worker, trainer."""
        roles = {}
        for process in Path("/proc").iterdir():
            if process.name.isdecimal():
                with contextlib.suppress(OSError):
                    if f"{MARK}={self.mark}\0".encode() in (process / "environ").read_bytes():
                        words = (process / "cmdline").read_bytes().decode().split("\0")
                        roles[_role(words)] = int(process.name)
        return roles

    def kill(self, *roles: str) -> bool:
        """SIGKILL to those of these roles that live; whether there was one."""
        return self.send(signal.SIGKILL, *roles)

    def send(self, number: signal.Signals, *roles: str) -> bool:
        """A signal to those of these roles that live; whether there was one."""
        found = self.find()
        hit = [found[role] for role in roles if role in found]
        for pid in hit:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return bool(hit)

    def end(self, reap: Callable[[], object]) -> None:
        """Kill until none is left.

        Args:
            reap: Collects the one that this process has started, which else stays as a zombie.
        """
        while found := self.find():
            self.kill(*found)
            reap()
            time.sleep(0.02)


def _role(words: Sequence[str]) -> str:
    if any(word.startswith("faults.writers.") for word in words[:3]):
        return "trainer"
    if "--worker" in words:
        return "worker"
    return "supervisor" if "agent" in words[:4] else "launcher"
