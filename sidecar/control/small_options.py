"""Options of the commands that must start fast: those in every pod, and `podferry dataset get`.

They parse with argparse, since click takes longer to load than these commands take to run.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podferry.contract.api import AGENT_VARIABLE
from podferry.sidecar.control.termination_message import TERMINATION_LOG

NO_AGENT = f"no agent: neither --agent nor {AGENT_VARIABLE} is set"
_GLOBS: Mapping[str, Any] = {"metavar": "GLOB", "action": "append", "default": []}

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "--agent": {"metavar": "URL", "help": f"URL of the agent  [default: ${AGENT_VARIABLE}]"},
    "--termination-log": {
        "metavar": "FILE",
        "type": Path,
        "default": TERMINATION_LOG,
        "help": "existing file that receives the reason of a failure",
    },
    "--refused": {
        "metavar": "REASON",
        "help": "fail at once with this reason: the pod's settings are invalid",
    },
    "step": {"metavar": "STEP", "help": "name or step of the checkpoint"},
    "dataset": {"metavar": "URI", "help": "dataset to fetch: a URI, a reference or a path"},
    "dataset_path": {"metavar": "DIRECTORY", "help": "target directory, created if missing"},
    "--include": {**_GLOBS, "help": "fetch only these files, such as *.jpg; repeatable"},
    "--exclude": {**_GLOBS, "help": "skip these files; repeatable"},
    "--shard": {"metavar": "RANK/COUNT", "help": "fetch one shard; auto: the one that the launcher sets"},
    "--unpack": {"metavar": "WHEN", "help": "unpack archives: auto, never or always  [default: auto]"},
    "--file-mode": {"metavar": "MODE", "help": "mode of the files  [default: 0644]"},
    "--endpoint": {"metavar": "URL", "help": "URL of the object store"},
    "--region": {"metavar": "NAME", "help": "region of the object store"},
    "--secret-dir": {
        "metavar": "DIRECTORY",
        "type": Path,
        "help": "directory with one file per credential, like a mounted Secret",
    },
}
"""Arguments of `argparse.ArgumentParser.add_argument`, by the option's or positional's name."""


def add_options(parser: argparse.ArgumentParser, *names: str) -> argparse.ArgumentParser:
    """Add rows of `OPTIONS` to a parser, and return it."""
    for name in names:
        parser.add_argument(name, **OPTIONS[name])
    if "--agent" in names:
        parser.set_defaults(agent=os.environ.get(AGENT_VARIABLE, ""))
    return parser
