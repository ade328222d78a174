"""`podferry wait`: holds the trainer back until its data is complete, or fails with the reason.

Loads little and starts fast: it is one more container in every pod.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from podferry.contract.errors import Unavailable
from podferry.contract.exit_codes import EXIT_NEVER
from podferry.contract.http_api import RESTORED_FILE_VARIABLE, Gate
from podferry.sidecar.control.command_options import NO_AGENT, HelpFormatter, add_options
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.control.restored_file import write_restored
from podferry.sidecar.control.termination_message import TERMINATION_LOG, leave_message

REPORT_SECONDS = 10.0
"""Seconds between two lines of progress."""


def main(arguments: list[str]) -> int:
    """Wait for the gate; 0 once it is open, `EXIT_NEVER` if retrying cannot help, 1 if it may."""
    description = "Wait until the agent opens the gate."
    parser = argparse.ArgumentParser("podferry wait", description=description, formatter_class=HelpFormatter)
    add_options(parser, "--agent", "--termination-log", "--refused")
    parser.set_defaults(termination_log=TERMINATION_LOG)
    options = parser.parse_args(arguments)
    if options.refused is not None:
        return _fail(f"podferry: {options.refused}", options.termination_log, EXIT_NEVER)
    if not options.agent:
        return _fail(NO_AGENT, options.termination_log, EXIT_NEVER)
    try:
        gate = AgentClient(options.agent).wait_for_gate(_report, REPORT_SECONDS)
    except Unavailable as error:
        return _fail(str(error), options.termination_log, 1)
    if gate.open:
        _report(gate)
        return _write_restored(gate, options.termination_log)
    reason = "podferry: " + "\n".join(map(str, gate.problems))
    return _fail(reason, options.termination_log, 1 if gate.retryable else EXIT_NEVER)


def _write_restored(gate: Gate, termination_log: Path) -> int:
    """Write the file that the pod's trainer reads, if it has one; the exit code."""
    file = os.environ.get(RESTORED_FILE_VARIABLE)
    try:
        if file:
            write_restored(gate, Path(file))
    except OSError as error:
        return _fail(f"podferry: {file} cannot be written: {error.strerror}", termination_log, 1)
    return 0


def _report(gate: Gate) -> None:
    sys.stderr.write(gate.summary + "\n")
    sys.stderr.flush()


def _fail(reason: str, termination_log: Path, code: int) -> int:
    sys.stderr.write(reason + "\n")
    leave_message(reason, termination_log)
    return code
