"""What a node does for a pod with a sidecar: starts the agent, waits at the gate, runs the trainer.

An agent that dies is started again in the same directories. When the trainer has ended, the agent is asked
to end. `python -m faults.kubelet FILE`; the file holds `agent` and `trainer` (commands), `port`, `directory`
(of the checkpoints) and `answer` (a file for what the agent says of durability at the end). The exit code is
the trainer's, or 75 if the gate did not open. This module imports nothing of podferry.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

REFUSED = 75
GRACE = 45.0
"""Seconds that the agent may take to end."""
GLANCE = 0.1
"""Seconds between two looks at an agent that lives."""
PAUSE = 0.3
"""Seconds before an agent that died is started again."""


class Pod:
    """Agent and trainer, side by side."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._ending = threading.Event()
        Path(config["directory"]).mkdir(exist_ok=True)
        self._agent = subprocess.Popen(config["agent"])
        self._trainer: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Live; the exit code."""
        signal.signal(signal.SIGTERM, lambda *_: self.end())
        keeper = threading.Thread(target=self._keep)
        keeper.start()
        code = self._train()
        self._ask()
        self._ending.set()
        self._agent.terminate()
        keeper.join()
        return code

    def end(self) -> None:
        """The pod is deleted: every container gets SIGTERM, the sidecar after the trainer."""
        self._ending.set()
        if self._trainer is not None:
            self._trainer.terminate()

    def _keep(self) -> None:
        """Start the agent again until the pod ends; then wait for it, at most the grace."""
        while not self._ending.is_set():
            try:
                self._agent.wait(GLANCE)
            except subprocess.TimeoutExpired:
                continue
            if not self._ending.wait(PAUSE):
                self._agent = subprocess.Popen(self._config["agent"])
        try:
            self._agent.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._agent.kill()
            self._agent.wait()

    def _train(self) -> int:
        gate = self._gate()
        if gate is None or not gate["open"]:
            return REFUSED
        self._trainer = subprocess.Popen(
            self._config["trainer"],
            env={**os.environ, "PODFERRY_AGENT": self._url, **gate["environment"]},
        )
        if self._ending.is_set():
            self._trainer.terminate()
        return self._trainer.wait()

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self._config['port']}"

    def _gate(self) -> dict[str, Any] | None:
        """The gate once it is open or refused, None where the pod ended before."""
        while not self._ending.is_set():
            try:
                with urllib.request.urlopen(f"{self._url}/v1/gate?wait=5", timeout=10) as response:  # noqa: S310 - loopback
                    gate: dict[str, Any] = json.load(response)
            except (OSError, ValueError):
                time.sleep(0.1)
                continue
            if gate.get("open") or gate.get("problems"):
                return {"open": False, "environment": {}, **gate}
        return None

    def _ask(self) -> None:
        """Note what the agent says of durability at the end."""
        if self._trainer is None or self._ending.is_set():
            return
        deadline = time.monotonic() + GRACE
        url = f"{self._url}/v1/durable?wait=5&final=true"
        request = urllib.request.Request(url, method="POST")  # noqa: S310 - loopback
        while time.monotonic() < deadline and not self._ending.is_set():
            try:
                with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - loopback
                    answer = json.load(response)
            except (OSError, ValueError):
                time.sleep(0.2)
                continue
            if answer["durable"] or answer.get("hopeless"):
                Path(self._config["answer"]).write_text(json.dumps(answer))
                return


if __name__ == "__main__":
    code = Pod(json.loads(Path(sys.argv[1]).read_text())).run()
    sys.exit(code if code >= 0 else 128 - code)
