"""`podferry wait`: holds the trainer back until its data is whole, or ends with the reason.

Loads little and starts fast: it is one more container in every pod.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from podferry.contract.api import AGENT_VARIABLE, EXIT_NEVER, Gate
from podferry.contract.errors import Unavailable
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.control.termination_message import TERMINATION_LOG, leave_message

REPORT_EVERY = 10.0
"""Seconds between two lines about the progress."""


def main(arguments: list[str]) -> int:
    """Wait, and return the exit code: 0 open, `EXIT_NEVER` where no new try can help, 1 where one may."""
    parser = argparse.ArgumentParser(prog="podferry wait", description="Wait until the agent opens the gate.")
    parser.add_argument("--agent", default=os.environ.get(AGENT_VARIABLE, ""), help="URL of the agent")
    parser.add_argument("--termination-log", type=Path, default=TERMINATION_LOG, help="where the reason goes")
    parser.add_argument(
        "--refused", metavar="REASON", help="end at once with this reason: the wish is invalid"
    )
    options = parser.parse_args(arguments)
    if options.refused is not None:
        return _end(f"podferry: {options.refused}", options.termination_log, EXIT_NEVER)
    if not options.agent:
        return _end(
            f"no agent: neither --agent nor {AGENT_VARIABLE} is set", options.termination_log, EXIT_NEVER
        )
    try:
        gate = wait(AgentClient(options.agent))
    except Unavailable as error:
        return _end(str(error), options.termination_log, 1)
    if gate.open:
        sys.stderr.write(gate.summary + "\n")
        return 0
    reason = "podferry: " + "\n".join(map(str, gate.problems))
    return _end(reason, options.termination_log, 1 if gate.retryable else EXIT_NEVER)


def wait(client: AgentClient) -> Gate:
    """The gate once it is open or refused; tells the progress meanwhile."""
    for gate in client.gates(REPORT_EVERY):
        if gate.open or gate.problems:
            return gate
        sys.stderr.write(gate.summary + "\n")
        sys.stderr.flush()
    raise AssertionError("unreachable: the client asks for ever")


def _end(reason: str, termination_log: Path, code: int) -> int:
    sys.stderr.write(reason + "\n")
    leave_message(reason, termination_log)
    return code
