"""Runs a pipeline under KFP's local runner, in its own process; the last line has the outputs as JSON."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from demo.failure import DemoError

OUTPUTS = "demo outputs: "
"""Begins the line with the pipeline's outputs."""
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""The matrices are small: more threads than one wait for each other rather than help."""


def run_pipeline(
    pipeline: str,
    arguments: Mapping[str, Any],
    root: Path,
    log: Path,
    environ: Mapping[str, str],
    note: Callable[[str], None],
) -> Mapping[str, Any] | None:
    """Run a pipeline to its end; its outputs, or None if a step failed.

    Args:
        pipeline: `MODULE:NAME`.
        arguments: The pipeline's.
        root: KFP's pipeline root.
        log: File for all that is printed.
        environ: Added to the environment.
        note: Called with each line.

    Raises:
        DemoError: The process ended before it could run the pipeline.
    """
    command = [sys.executable, "-m", "demo.examples.flow", pipeline, str(root), json.dumps(dict(arguments))]
    together = {**os.environ, **environ, **ONE_THREAD, "PYTHONUNBUFFERED": "1"}
    outputs = None
    with (
        log.open("w") as written,
        subprocess.Popen(
            command, env=together, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        assert process.stdout is not None  # noqa: S101 - it was started with a pipe
        for line in process.stdout:
            written.write(line)
            note(line)
            if line.startswith(OUTPUTS):
                outputs = json.loads(line.removeprefix(OUTPUTS))
    if process.returncode not in {0, STEP_FAILED}:
        raise DemoError(f"the pipeline's process ended with {process.returncode}; its log: {log}")
    return outputs if process.returncode == 0 else None


STEP_FAILED = 3


def main(words: list[str]) -> int:
    """Run the pipeline; `STEP_FAILED` if a step fails."""
    from kfp import local  # noqa: PLC0415 - takes seconds, and is for the flow's process alone

    place, root, arguments = words
    module, _, name = place.partition(":")
    pipeline = getattr(importlib.import_module(module), name)
    local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=root)
    try:
        task = pipeline(**json.loads(arguments))
    except RuntimeError as error:  # what kfp.local raises where a step fails
        sys.stdout.write(f"{error}\n")
        return STEP_FAILED
    sys.stdout.write(f"{OUTPUTS}{json.dumps(task.outputs)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
