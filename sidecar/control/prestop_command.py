"""`podferry drain`: the sidecar's preStop hook. Tells the agent that its pod ends, and does not wait.

A native sidecar gets SIGTERM only after the trainer has ended, which can use up the whole grace; a preStop
hook runs from the beginning of the termination on, so the backlog goes out while the trainer still ends, the
newest checkpoint first. SIGTERM comes only after the hook, too, and says that nobody writes any more: a hook
that waited would wait for what a dead trainer has left half-written, until the grace is over.
"""

from __future__ import annotations

import argparse
import os
import sys

from podferry.contract.api import AGENT_VARIABLE
from podferry.contract.errors import Unavailable
from podferry.sidecar.control.http_client import AgentClient


def main(arguments: list[str]) -> int:
    """Tell, and return 0, or 1 where the agent does not answer."""
    parser = argparse.ArgumentParser(prog="podferry drain", description="Tell the agent that its pod ends.")
    parser.add_argument("--agent", default=os.environ.get(AGENT_VARIABLE, ""), help="URL of the agent")
    options = parser.parse_args(arguments)
    if not options.agent:
        parser.error(f"no agent: neither --agent nor {AGENT_VARIABLE} is set")
    try:
        AgentClient(options.agent).durable(0, ending=True)
    except Unavailable as error:
        sys.stderr.write(f"podferry: {error}\n")
        return 1
    return 0
