"""Options of the commands that must start fast: those in every pod, and `podferry dataset get`.

They parse with argparse, since click takes longer to load than these commands take to run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from podferry.contract.annotation_values import parse_endpoint
from podferry.contract.errors import InvalidSpec
from podferry.contract.http_api import AGENT_VARIABLE
from podferry.sidecar.config.local_path import parse_directory

NO_AGENT = f"no agent: neither --agent nor {AGENT_VARIABLE} is set, as `podferry run` and injected pods do"


def _directory(text: str) -> Path:
    try:
        return parse_directory(text)
    except InvalidSpec as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _endpoint(text: str) -> str:
    try:
        return parse_endpoint(text)
    except InvalidSpec as error:
        raise argparse.ArgumentTypeError(str(error)) from error


COLUMNS, COLUMNS_FREE = 80, 2
"""Of a line of help: where there is no terminal, and how many argparse leaves free."""
OPTIONS = {
    "--agent": ("URL", f"URL of the agent  [default: ${AGENT_VARIABLE}]"),
    "--termination-log": ("FILE", "existing file that receives the reason of a failure"),
    "--refused": ("REASON", "fail at once with this reason: the pod's settings are invalid"),
    "step": ("STEP", "name or step of the checkpoint"),
    "dataset": ("URI", "dataset to fetch: a URI, a reference or a path"),
    "dataset_path": ("DIRECTORY", "target directory, created if missing"),
    "--include": ("GLOB", "fetch only these files, such as *.jpg; repeatable"),
    "--exclude": ("GLOB", "skip these files; repeatable"),
    "--shard": ("RANK/COUNT", "fetch one shard; auto: the one that the launcher sets"),
    "--unpack": ("WHEN", "unpack archives: auto, never or always  [default: auto]"),
    "--file-mode": ("MODE", "mode of the files  [default: 0644]"),
    "--endpoint": ("URL", "URL of the object store"),
    "--region": ("NAME", "region of the object store"),
    "--secret-dir": ("DIRECTORY", "directory with one file per credential, like a mounted Secret"),
    "--cache": ("URL", "address of a cache to ask for the files first, such as http://127.0.0.1:8091"),
}
"""Metavariable and help, by the option's or positional's name."""
PARSING: Mapping[str, Mapping[str, Any]] = {
    "--termination-log": {"type": Path},
    "--include": {"action": "append", "default": []},
    "--exclude": {"action": "append", "default": []},
    "--secret-dir": {"type": _directory},
    "--cache": {"type": _endpoint},
}
"""More arguments of `argparse.ArgumentParser.add_argument`."""


class HelpFormatter(argparse.HelpFormatter):
    """Finds the terminal's width by itself: for each option, argparse asks shutil, which imports codecs."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - COLUMNS_FREE)


def _columns() -> int:
    """As `shutil.get_terminal_size`."""
    with suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    with suppress(AttributeError, ValueError, OSError):  # no standard output, closed, or no terminal
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or COLUMNS  # type: ignore[union-attr]
    return COLUMNS


def add_options(parser: argparse.ArgumentParser, *names: str) -> argparse.ArgumentParser:
    """Add rows of `OPTIONS` to a parser, and return it."""
    for name in names:
        metavar, text = OPTIONS[name]
        parser.add_argument(name, metavar=metavar, help=text, **PARSING.get(name, {}))
    if "--agent" in names:
        parser.set_defaults(agent=os.environ.get(AGENT_VARIABLE, ""))
    return parser
