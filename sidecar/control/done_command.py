"""`podferry checkpoint done STEP`: the trainer says that a checkpoint is whole."""

from __future__ import annotations

import argparse
import os
import sys

from podferry.contract.api import AGENT_VARIABLE
from podferry.contract.errors import Unavailable
from podferry.sidecar.control.http_client import AgentClient


def main(arguments: list[str]) -> int:
    """Mark, and return 0, or 1 where it is not whole or not there, or the agent does not answer."""
    parser = argparse.ArgumentParser(prog="podferry checkpoint", description="What a trainer may say.")
    verbs = parser.add_subparsers(dest="verb", metavar="done", required=True)
    done = verbs.add_parser("done", help="a checkpoint is whole as it lies there")
    done.add_argument("step", metavar="STEP", help="its name, or its step")
    done.add_argument("--agent", default=os.environ.get(AGENT_VARIABLE, ""), help="URL of the agent")
    options = parser.parse_args(arguments)
    if not options.agent:
        done.error(f"no agent: neither --agent nor {AGENT_VARIABLE} is set")
    try:
        answer = AgentClient(options.agent).done(options.step)
    except Unavailable as error:
        sys.stderr.write(f"podferry: {error}\n")
        return 1
    for problem in answer.problems:
        sys.stderr.write(f"podferry: {problem}\n")
    return 1 if answer.problems else 0
