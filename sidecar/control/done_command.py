"""`podferry checkpoint done STEP`: the trainer reports that a checkpoint is complete."""

from __future__ import annotations

import argparse
import sys

from podferry.contract.errors import Unavailable
from podferry.sidecar.control.command_options import NO_AGENT, add_options
from podferry.sidecar.control.http_client import AgentClient


def main(arguments: list[str]) -> int:
    """Mark the checkpoint; 0, or 1 if it is incomplete, is not found, or the agent does not answer."""
    parser = argparse.ArgumentParser(prog="podferry checkpoint", description="Reports from the trainer.")
    verbs = parser.add_subparsers(dest="verb", metavar="done", required=True)
    done = add_options(verbs.add_parser("done", help="mark a checkpoint as complete"), "step", "--agent")
    options = parser.parse_args(arguments)
    if not options.agent:
        done.error(NO_AGENT)
    try:
        answer = AgentClient(options.agent).mark_done(options.step)
    except Unavailable as error:
        sys.stderr.write(f"podferry: {error}\n")
        return 1
    for problem in answer.problems:
        sys.stderr.write(f"podferry: {problem}\n")
    return 1 if answer.problems else 0
