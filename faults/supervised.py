"""An agent without a pod around it: its supervisor, whose workers may be killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from faults.family import Family
from faults.scene import ROOT
from podferry.contract.errors import Unavailable
from podferry.sidecar.control.http_client import AgentClient

GRACE = 45.0
"""Seconds that its end may take."""


class Supervised:
    """A supervisor that runs.

    Args:
        command: What starts it.
        environment: On top of this process's.
        log: Where it goes.
        port: Of its API.
        family: Its processes.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, port: int, family: Family
    ) -> None:
        self._client, self._family = AgentClient(f"http://127.0.0.1:{port}"), family
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            command,
            env={**os.environ, **environment, **family.environment},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def opens(self) -> bool:
        """Wait until its gate has opened or is refused; whether it has opened."""
        with contextlib.suppress(Unavailable):
            return self._client.wait_for_gate().open
        return False

    def durable(self, seconds: float) -> bool:
        """Wait until all that was saved is durable; whether it is."""
        with contextlib.suppress(Unavailable):
            return self._client.wait_durable(seconds, final=True).durable
        return False

    def end(self) -> None:
        """Ask it to end, and wait for as long as a drain may take."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)

    def close(self) -> None:
        """Kill what is left."""
        self._family.end(self._process.poll)
        self._process.wait()
        self._log.close()
