"""Options of several datasets: `NAME=VALUE` is of the dataset NAME, `VALUE` of the one without a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.spec import DATASET_NAME

NAMED = re.compile(rf"(?P<name>{DATASET_NAME})=(?P<value>.*)", re.DOTALL)
LISTS = frozenset({"include", "exclude"})
"""Options that may come several times for one dataset."""


def split_named(text: str) -> tuple[str, str]:
    """The dataset's name, empty where there is none, and the value."""
    match = NAMED.fullmatch(text)
    return (match["name"], match["value"]) if match else ("", text)


def by_dataset(options: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The values of repeated options by the dataset that they are of.

    A path or a glob may hold a `=` as well (`year=2024/*`), so what stands before it is a name only where
    `dataset` has it.

    Args:
        options: Each option's values as they were given, in order, `dataset` among them.

    Raises:
        InvalidSpec: A dataset has two values where there can be one, all such at once.
    """
    names = {split_named(text)[0] for text in options["dataset"]}
    found = {option: _grouped(values, names) for option, values in options.items()}
    InvalidSpec.raise_any(problem for option, groups in found.items() for problem in _twice(option, groups))
    return {
        option: {name: values if option in LISTS else values[0] for name, values in groups.items()}
        for option, groups in found.items()
    }


def _grouped(texts: Iterable[str], names: set[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for text in texts:
        name, value = split_named(text)
        if name in names:
            groups.setdefault(name, []).append(value)
        else:
            groups.setdefault("", []).append(text)
    return groups


def _twice(option: str, groups: Mapping[str, list[str]]) -> Iterable[Problem]:
    for name, values in groups.items() if option not in LISTS else ():
        if len(values) > 1:
            written = f"--{option.replace('_', '-')}"
            what = f"{written} is given twice for {f'the dataset {name}' if name else 'one dataset'}"
            remedy = f"Name the datasets: {written} train=… {written} test=…"
            yield Problem(what, ", ".join(map(repr, values)), remedy)
