"""Types of the parameters of several verbs. Loads little, for the verbs that start fast."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from podferry.contract.errors import InvalidSpec
from podferry.contract.quantity import parse_timeout
from podferry.sidecar.config.local_path import parse_directory


class ParsedParam(click.ParamType[Any]):
    """A parameter whose value is read by one of podferry's own parsers."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType`."""
        if isinstance(value, float | Path):  # a default
            return value
        try:
            return self._parse(value)
        except InvalidSpec as error:
            self.fail(str(error), param, ctx)


SECONDS = ParsedParam("SECONDS", parse_timeout)
DIRECTORY = ParsedParam("DIRECTORY", parse_directory)
