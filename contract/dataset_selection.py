"""Which globs select a dataset's files: those that its reference was frozen with, or those given with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podferry.contract.annotation_keys import split_key
from podferry.contract.dataset_reference import Reference
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.selection import glob_problem
from podferry.contract.spec import PREFIX

SELECTION_KEYS = ("include", "exclude")


def selection_of(
    reference: Reference, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The globs to include and to exclude. A reference without any leaves the choice to those given.

    Raises:
        InvalidSpec: Given globs are not those of the reference, or these are invalid.
    """
    given = {"include": tuple(include), "exclude": tuple(exclude)}
    InvalidSpec.raise_any(selection_problems(reference, given))
    carried = _carried(reference)
    return (
        (carried["include"], carried["exclude"])
        if any(carried.values())
        else (given["include"], given["exclude"])
    )


def selection_problems(
    reference: Reference, given: Mapping[str, Sequence[str]], prefix: str = "", suffix: str = ""
) -> Iterator[Problem]:
    """Why the given globs, by `include` and `exclude`, cannot be used with a reference.

    `prefix` and `suffix` make a key of each, as the user writes it.
    """
    carried = _carried(reference)
    if not any(carried.values()):
        return
    yield from (problem for globs in carried.values() for one in globs if (problem := glob_problem(one)))
    for key, globs in carried.items():
        asked = tuple(given.get(key, ()))
        if asked and asked != globs:
            frozen = f"frozen with {' '.join(globs)}" if globs else "frozen without"
            yield Problem(
                f"{prefix}{key}{suffix} selects other files than the dataset reference",
                f"{' '.join(asked)}; {frozen}",
                f"Leave it out, since the reference carries its selection, or freeze the dataset with {key}",
            )


def carried_selections(values: Mapping[str, Any]) -> tuple[dict[str, tuple[str, ...]], list[Problem]]:
    """The values of `include[.NAME]` and `exclude[.NAME]` that the references carry, and all conflicts.

    `values` has the annotations' values by name without the prefix.
    """
    found: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    for key, reference in values.items():
        kind, name = split_key(key)
        if kind != "dataset" or not isinstance(reference, Reference):
            continue
        suffix = f".{name}" if name else ""
        given = {key: values.get(key + suffix, ()) for key in SELECTION_KEYS}
        problems += selection_problems(reference, given, PREFIX, suffix)
        found |= {key + suffix: globs for key, globs in _carried(reference).items() if globs}
    return found, problems


def _carried(reference: Reference) -> dict[str, tuple[str, ...]]:
    return {"include": reference.include, "exclude": reference.exclude}
