"""The levels and formats of logs, and which apply by default. Loads nothing: every start needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
"""Numbers as in Python's `logging`."""
FORMATS = ("text", "json")
LEVEL_VARIABLE = "PODFERRY_LOG_LEVEL"
FORMAT_VARIABLE = "PODFERRY_LOG_FORMAT"
POD_VARIABLE = "KUBERNETES_SERVICE_HOST"
"""Kubernetes sets it in every container ("Service environment variables", its documentation)."""


def default_format(environ: Mapping[str, str], stream: TextIO) -> str:
    """The format unless one is requested: JSON in a pod, whose log a program collects; elsewhere text."""
    return environ.get(FORMAT_VARIABLE) or (
        "json" if POD_VARIABLE in environ and not stream.isatty() else "text"
    )


def local_level(environ: Mapping[str, str]) -> str:
    """The level of an agent next to a command, unless one is requested.

    The command itself reports the progress and the result, so its agent adds only what is wrong. In a pod
    its log is the sidecar's.
    """
    return environ.get(LEVEL_VARIABLE) or ("info" if POD_VARIABLE in environ else "warning")
