"""Configures structured logs: JSON lines in a pod, readable lines on a terminal."""

from __future__ import annotations

import logging
import sys

import stamina
import structlog
from stamina.instrumentation import RetryDetails

LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
log = structlog.get_logger()


def configure_logs(level: str = "info") -> None:
    """Log from `level` on to standard error, readable on a terminal, otherwise as JSON.

    Each retry is one line.
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
    stamina.instrumentation.set_on_retry_hooks([_log_retry])


def _log_retry(details: RetryDetails) -> None:
    """Stamina's own hook logs Python representations."""
    reason = " ".join(str(details.caused_by).split())
    log.warning("retrying", reason=reason, seconds=round(details.wait_for, 1))
