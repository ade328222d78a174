"""`podferry drain`: the sidecar's preStop hook. Waits until what lies in the checkpoint directory is durable.

A native sidecar gets SIGTERM only after the trainer has ended, which can use up the whole grace; a preStop
hook runs from the beginning of the termination on, so the backlog goes out while the trainer still ends, the
newest checkpoint first.
"""

from __future__ import annotations

import argparse
import os
import sys

from podferry.contract.api import AGENT_VARIABLE
from podferry.contract.errors import Unavailable
from podferry.sidecar.client import AgentClient

LONGEST = 86_400.0
"""Seconds: the pod's grace ends it, whatever it is."""


def main(arguments: list[str]) -> int:
    """Wait, and return 0 where everything is durable, 1 where it is not or the agent does not answer."""
    parser = argparse.ArgumentParser(prog="podferry drain", description="Wait until checkpoints are durable.")
    parser.add_argument("--agent", default=os.environ.get(AGENT_VARIABLE, ""), help="URL of the agent")
    parser.add_argument("--timeout", type=float, default=LONGEST, help="seconds; the pod's grace by default")
    options = parser.parse_args(arguments)
    if not options.agent:
        parser.error(f"no agent: neither --agent nor {AGENT_VARIABLE} is set")
    try:
        answer = AgentClient(options.agent).durable(options.timeout, ending=True)
    except Unavailable as error:
        sys.stderr.write(f"podferry: {error}\n")
        return 1
    for problem in answer.problems:
        sys.stderr.write(f"podferry: {problem}\n")
    return 0 if answer.durable else 1
