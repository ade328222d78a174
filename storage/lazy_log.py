"""Logs that load when there is something to log: structlog takes as long as a small download."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

prepare_logs: list[Callable[[], None]] = []
"""Called before the first retry and before a warning: who starts quickly sets up its logs only then."""


def warn(event: str, **fields: object) -> None:
    """Log a warning."""
    for prepare in prepare_logs:
        prepare()
    import_module("structlog").get_logger().warning(event, **fields)
