"""Reads documents by tables of keys: the shape of the injection policy, and of the rules in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.suggest import did_you_mean
from podferry.webhook.policy.policy_values import PolicyValue

Table = Mapping[str, "PolicyValue | ListOf | Table"]
"""Keys with the kind of their value, or with a table of their own."""


class ListOf(NamedTuple):
    """A list of mappings.

    Attributes:
        table: The keys of each.
        required: Those that each must have.
    """

    table: Table
    required: tuple[str, ...] = ()


def read_table(
    document: Any, table: Table, above: str, problems: list[Problem], required: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The values that parsed, by field name; appends the problems of the others to `problems`.

    `above` is the path of the document, such as `defaults.`, and `required` has the keys that it must have.
    """
    if not isinstance(document, dict):
        where = above.rstrip(".")
        problems.append(Problem(f"{where}: not a mapping", repr(document), f"Keys: {', '.join(table)}"))
        return {}
    problems += [
        Problem(f"{above}{name} is missing from the policy", "", f"Add {name}")
        for name in required
        if name not in document
    ]
    values: dict[str, Any] = {}
    for name, raw in document.items():
        kind = table.get(name)
        if kind is None:
            remedy = did_you_mean(str(name), table, f"Known: {', '.join(table)}")
            problems.append(Problem(f"{above}{name}: unknown key in the policy", "", remedy))
            continue
        try:
            values[_field_name(name)] = _value(kind, raw, f"{above}{name}", problems)
        except InvalidSpec as error:
            problems += [
                Problem(f"{above}{name}: {one.what}", one.measured, one.remedy) for one in error.problems
            ]
    return values


def _value(kind: PolicyValue | ListOf | Table, raw: Any, path: str, problems: list[Problem]) -> Any:
    if isinstance(kind, Mapping):
        return read_table(raw, kind, f"{path}.", problems)
    if isinstance(kind, PolicyValue):
        return kind.parse(raw)
    if not isinstance(raw, list):
        raise InvalidSpec.of("not a list", repr(raw), f"Write a list of mappings: {', '.join(kind.table)}")
    return tuple(
        read_table(item, kind.table, f"{path}[{index}].", problems, kind.required)
        for index, item in enumerate(raw)
    )


def _field_name(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
