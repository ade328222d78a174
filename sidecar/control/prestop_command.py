"""`podferry drain`: the sidecar's preStop hook. Notifies the agent that its pod is ending; does not wait.

A native sidecar gets SIGTERM only after the trainer has ended, which can use up the entire grace period. A
preStop hook runs from the start of the termination, so the backlog uploads, newest checkpoint first, while
the trainer is still ending. SIGTERM, which follows the hook, also means that nothing writes any more: a hook
that waited would wait for the half-written files of a dead trainer until the grace period is over.
"""

from __future__ import annotations

import argparse
import sys

from podferry.contract.errors import Unavailable
from podferry.sidecar.control.command_options import NO_AGENT, HelpFormatter, add_options
from podferry.sidecar.control.http_client import AgentClient


def main(arguments: list[str]) -> int:
    """Notify the agent; 0, or 1 if it does not answer."""
    description = "Notify the agent that its pod ends."
    parser = argparse.ArgumentParser("podferry drain", description=description, formatter_class=HelpFormatter)
    options = add_options(parser, "--agent").parse_args(arguments)
    if not options.agent:
        parser.error(NO_AGENT)
    try:
        AgentClient(options.agent).wait_durable(0, ending=True)
    except Unavailable as error:
        sys.stderr.write(f"podferry: {error}\n")
        return 1
    return 0
