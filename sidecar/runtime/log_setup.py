"""Configures structured logs on standard error: lines for people, or JSON for programs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO, cast

import structlog

from podferry.sidecar.runtime.log_options import LEVEL_VARIABLE, LEVELS, default_format
from podferry.sidecar.runtime.log_text import text_renderer
from podferry.sidecar.runtime.lossy_stream import LossyStream
from podferry.sidecar.runtime.outages import Outages

if TYPE_CHECKING:
    from stamina.instrumentation import RetryDetails

log = structlog.get_logger()
outages = Outages()


def configure_logs(level: str = "info", log_format: str | None = None) -> None:
    """Log from `level` on, as "text" or "json" (None: see `default_format`)."""
    as_json = (log_format or default_format(os.environ, sys.stderr)) == "json"
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            *(_json_processors() if as_json else [text_renderer(sys.stderr)]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, LossyStream(sys.stderr))),
    )
    log_retries()


def log_retries() -> None:
    """Have stamina log here what it repeats, once it is loaded: most starts repeat nothing."""
    if "stamina" in sys.modules:
        sys.modules["stamina"].instrumentation.set_on_retry_hooks([_log_retry])


def configure_unless_done() -> None:
    """Configure the logs of a verb that rarely logs, for people: stamina's own hook prints to stdout."""
    if not structlog.is_configured():
        configure_logs(os.environ.get(LEVEL_VARIABLE, "warning"))


def _json_processors() -> list[structlog.typing.Processor]:
    return [
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.JSONRenderer(),
    ]


def _log_retry(details: RetryDetails) -> None:
    """Stamina's own hook logs Python representations, and each retry."""
    reason = " ".join(str(details.caused_by).split())
    if outages.is_news(details.caused_by):
        log.warning("retrying", reason=reason)
    else:
        log.debug("retrying", reason=reason, seconds=round(details.wait_for, 1))
