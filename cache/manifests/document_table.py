"""Reads the documents that describe a cache, by tables of their keys; collects everything that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.suggest import did_you_mean


class Key(NamedTuple):
    """A key whose value is used.

    Attributes:
        name: Of the value in `Found.values`.
        parse: Checks and converts it; raises `InvalidSpec`.
    """

    name: str
    parse: Callable[[Any], Any]


class Ignored(NamedTuple):
    """A key that changes nothing here, and the reason."""

    reason: str


Table = Mapping[str, "Key | Ignored | Table"]
"""What each key means, or a table for the mapping below it."""


@dataclass
class Found:
    """What documents say.

    Attributes:
        values: By `Key.name`.
        problems: Why the document cannot be used.
        notes: Keys that are ignored, and why.
    """

    values: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)


def read_table(document: Any, table: Table, above: str, found: Found) -> None:
    """Add what a mapping says; `above` is its path, such as `spec.`."""
    if not isinstance(document, dict):
        remedy = f"Keys: {', '.join(table)}"
        found.problems.append(Problem(f"{above.rstrip('.')}: not a mapping", repr(document), remedy))
        return
    for name, value in document.items():
        _read_key(name, value, table, above, found)


def _read_key(name: Any, value: Any, table: Table, above: str, found: Found) -> None:
    meaning, path = table.get(name), f"{above}{name}"
    if meaning is None:
        remedy = did_you_mean(str(name), table, f"Known: {', '.join(table)}")
        found.problems.append(Problem(f"{path}: unknown key", "", remedy))
    elif isinstance(meaning, Ignored):
        found.notes.append(Problem(f"{path} is ignored", meaning.reason))
    elif isinstance(meaning, Key):
        try:
            found.values[meaning.name] = meaning.parse(value)
        except InvalidSpec as error:
            found.problems += [
                Problem(f"{path}: {one.what}", one.measured, one.remedy) for one in error.problems
            ]
    else:
        read_table(value, meaning, f"{path}.", found)


def text(parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    """A parser of texts, for what YAML has read: a number counts as its text."""

    def parse_any(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise InvalidSpec.of("not a text", repr(value), "Write a text")
        return parse(str(value))

    return parse_any


def parse_count(value: Any) -> int:
    """Parse a number from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidSpec.of("not a number from 1", repr(value), "Write a number")
    return value


def parse_strings(value: Any) -> tuple[str, ...]:
    """Parse a list of texts."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InvalidSpec.of("not a list of texts", repr(value), "Write a list such as [team-a, team-b]")
    return tuple(value)


def parse_labels(value: Any) -> dict[str, str]:
    """Parse labels."""
    if not isinstance(value, dict) or not all(isinstance(one, str) for pair in value.items() for one in pair):
        raise InvalidSpec.of("not a mapping of texts", repr(value), 'Write labels such as {pool: "gpu"}')
    return dict(value)


def parse_mapping(value: Any) -> dict[str, Any]:
    """Parse a mapping, which the API server checks."""
    if not isinstance(value, dict):
        raise InvalidSpec.of("not a mapping", repr(value), "Write it as in a pod")
    return dict(value)


def parse_mappings(value: Any) -> tuple[dict[str, Any], ...]:
    """Parse a list of mappings, which the API server checks."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InvalidSpec.of("not a list of mappings", repr(value), "Write it as in a pod")
    return tuple(value)
