"""The flow, run by KFP's local runner in its own process: its output is parsed line by line."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from podferry.pipelines.digits_events import AnyEvent, read_event

COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
BEGAN = re.compile(rb"Executing task '([^']+)'")
ENDED = re.compile(rb"Task '([^']+)' finished with status (\w+)")
"""What kfp.local prints before and after a step (kfp/local/task_dispatcher.py of kfp 2.17)."""


class Arguments(msgspec.Struct, frozen=True):
    """The pipeline's.

    Attributes:
        uri: URI of the images.
        checkpoints: URI of the destination.
        epochs: To train in all.
    """

    uri: str
    checkpoints: str
    epochs: int


@dataclass(frozen=True, slots=True)
class StepBegan:
    """KFP starts a step."""

    name: str


@dataclass(frozen=True, slots=True)
class StepEnded:
    """KFP says how a step ended."""

    name: str
    succeeded: bool


FlowEvent = AnyEvent | StepBegan | StepEnded


def parse_line(line: bytes) -> FlowEvent | None:
    """The event in a line of the flow's output, or None for other text."""
    plain = COLOUR.sub(b"", line)
    if began := BEGAN.search(plain):
        return StepBegan(began[1].decode())
    if ended := ENDED.search(plain):
        return StepEnded(ended[1].decode(), ended[2] == b"SUCCESS")
    return read_event(plain)


class Flow:
    """A running flow."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    def events(self) -> Iterator[tuple[float, FlowEvent]]:
        """The events of the flow, each with its time, until its last process has ended.

        The agents of its steps hold the same pipe, so the last line comes after they have drained.
        """
        assert self._process.stdout is not None  # noqa: S101 - it was started with a pipe
        with self._log.open("wb", buffering=0) as log:
            for line in self._process.stdout:
                log.write(line)
                event = parse_line(line)
                if event is not None:
                    yield time.time(), event

    def code(self) -> int:
        """The exit code: 0 where every step has succeeded."""
        return self._process.wait()


READABLE_LOGS = {"PODFERRY_LOG_FORMAT": "json", "PODFERRY_LOG_LEVEL": "info"}
"""As in a pod: the report is made from what the agent logs."""


@contextmanager
def running(arguments: Arguments, root: Path, log: Path, environ: Mapping[str, str]) -> Iterator[Flow]:
    """A flow that has been started; one that still runs at the end of the block is killed.

    Args:
        arguments: The pipeline's.
        root: KFP's pipeline root.
        log: Where all that is printed goes.
        environ: Added to the environment.
    """
    command = [sys.executable, "-m", "demo.flow", str(root), msgspec.json.encode(arguments).decode()]
    together = {**os.environ, **environ, "PYTHONUNBUFFERED": "1", **READABLE_LOGS}
    process = subprocess.Popen(
        command,
        env=together,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield Flow(process, log)
    finally:
        if process.poll() is None:
            # The steps are in its group; the agents see that these have gone, drain and end.
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()


def main() -> int:
    """Run the pipeline; 1 where a step fails."""
    from kfp import local  # noqa: PLC0415 - takes seconds, and is for the flow's process alone

    from podferry.pipelines.digits import digits  # noqa: PLC0415 - imports kfp

    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("arguments")
    given = parser.parse_args()
    arguments = msgspec.json.decode(given.arguments, type=Arguments)
    local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=given.root)
    try:
        digits(**msgspec.structs.asdict(arguments))
    except RuntimeError as error:  # what kfp.local raises where a step fails
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
