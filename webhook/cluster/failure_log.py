"""Logs what fails again and again, such as a poll of the API server, only when that begins or changes."""

from __future__ import annotations

from typing import Any

from podferry.contract.errors import FerryError


class FailureLog:
    """The failures of one task."""

    def __init__(self, log: Any, level: str, event: str, **fields: Any) -> None:
        """Log with the structlog logger `log`, at a level such as `error`."""
        self._log, self._level, self._event, self._fields = log, level, event, fields
        self._problems: tuple[str, ...] = ()

    def failed(self, error: FerryError) -> None:
        """Log the error, unless the task failed in the same way the last time."""
        problems = tuple(map(str, error.problems))
        if problems != self._problems:
            getattr(self._log, self._level)(self._event, problems=problems, **self._fields)
        self._problems = problems

    def succeeded(self) -> None:
        """Log the next failure, whatever it is."""
        self._problems = ()
