"""Starts the workers of one machine, as torchrun does: one process per rank."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trained:
    """The result: test accuracy (0 to 1), and the epochs that earlier attempts had completed."""

    accuracy: float
    epochs_before: int


def train(
    dataset: str, checkpoints: str, lineage: str, epochs: int, workers: int, fail_at: int = 0
) -> Trained:
    """Run the workers to their end; the arguments are those of `worker.work`.

    Raises:
        RuntimeError: A worker failed; its error is in the log.
    """
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    arguments = [dataset, checkpoints, lineage, str(epochs), str(fail_at)]
    command = [sys.executable, "-m", "podferry.pipelines.distributed.worker", *arguments]
    shared = {"WORLD_SIZE": str(workers), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = [
        subprocess.Popen(
            command, env={**os.environ, **shared, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True
        )
        for rank in range(workers)
    ]
    outputs = [process.communicate()[0] for process in started]
    codes = [process.returncode for process in started]
    if any(codes):
        raise RuntimeError(f"the workers ended with {codes}: see their errors in the log")
    found = json.loads(outputs[0].splitlines()[-1])
    return Trained(found["accuracy"], found["epochs_before"])
