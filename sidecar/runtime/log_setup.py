"""Structured logs: one JSON object a line in a pod, readable lines on a terminal."""

from __future__ import annotations

import logging
import sys

import stamina
import structlog
from stamina.instrumentation import RetryDetails

LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
log = structlog.get_logger()


def configure_logs(level: str = "info") -> None:
    """Send logs from a level on to standard error: for people where that is a terminal, else as JSON.

    Retries are told in one line each.
    """
    on_terminal = sys.stderr.isatty()
    renderer = structlog.dev.ConsoleRenderer() if on_terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
    stamina.instrumentation.set_on_retry_hooks([_tell_retry])


def _tell_retry(details: RetryDetails) -> None:
    """What stamina tells by itself is a record of Python's representations."""
    reason = " ".join(str(details.caused_by).split())
    log.warning("trying again", reason=reason, seconds=round(details.wait_for, 1))
