"""A pod's annotations → its ferry spec. All that is wrong is said at once.

A key belongs to us when it begins with `podferry.io/`. Each value has its variables expanded, is parsed by
the table in `podferry.contract.keys`, and then the wishes are checked against each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from podferry.contract.errors import InvalidWish, Problem
from podferry.contract.keys import DIRECTIONS, KEYS, RESTORE_WORDS, STAMPS
from podferry.contract.quantity import format_bytes, quantity_at_least
from podferry.contract.reference import Reference, parse_reference
from podferry.contract.spec import (
    CHECKPOINT_PATH,
    DATASET_PATH,
    PREFIX,
    Access,
    CheckpointSpec,
    DatasetSpec,
    FerrySpec,
)
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import Uri, parse_uri
from podferry.contract.variables import Variables, expand

PATHS = (
    ("dataset", "dataset-path", DATASET_PATH),
    ("checkpoints", "checkpoint-path", CHECKPOINT_PATH),
)
"""Directories of the pod: whose they are, their key, their default."""
NOTHING: Mapping[str, str] = MappingProxyType({})
BELONGS = {
    "dataset": ("dataset-path", "dataset-size", "dataset-secret", "dataset-endpoint", "dataset-region"),
    "checkpoints": (
        "checkpoint-path",
        "checkpoint-size",
        "checkpoints-secret",
        "checkpoints-endpoint",
        "checkpoints-region",
        "keep-local",
        "restore",
    ),
}
"""Keys that mean nothing without another."""


def read_annotations(
    annotations: Mapping[str, str],
    variables: Variables | None = None,
    declared: Mapping[str, str] = NOTHING,
) -> FerrySpec | None:
    """What a pod wishes, None where it has not opted in or has opted out.

    Args:
        annotations: All of the pod's, also those of others.
        variables: What its values may refer to.
        declared: Datasets that the policy declares: references by name.

    Raises:
        InvalidWish: Everything that is wrong, in the order of the documentation's table.
    """
    wishes = wishes_of(annotations)
    if not wishes or wishes.get("inject") == "false":
        return None
    values, problems = _values(wishes, variables or Variables(), declared)
    InvalidWish.raise_any([*_unknown(wishes), *problems, *_cross(wishes, values)])
    return _spec(values)


def wishes_of(annotations: Mapping[str, str]) -> dict[str, str]:
    """Our annotations without the prefix and without the stamps that podferry sets itself."""
    ours = {key.removeprefix(PREFIX): text for key, text in annotations.items() if key.startswith(PREFIX)}
    return {name: text for name, text in ours.items() if name not in STAMPS}


def _unknown(wishes: Mapping[str, str]) -> list[Problem]:
    # Compared without the prefix, which would make all of them look alike.
    otherwise = f"Known: {', '.join(KEYS)}"
    return [
        Problem(f"{PREFIX}{name}: unknown annotation", repr(text), did_you_mean(name, KEYS, otherwise))
        for name, text in sorted(wishes.items())
        if name not in KEYS
    ]


def _values(
    wishes: Mapping[str, str], variables: Variables, declared: Mapping[str, str]
) -> tuple[dict[str, Any], list[Problem]]:
    """What could be parsed, and what could not. `world` comes first, since others may refer to it."""
    values: dict[str, Any] = {}
    problems: dict[str, tuple[Problem, ...]] = {}
    for name in sorted(KEYS, key=lambda name: name != "world"):
        if name not in wishes:
            continue
        try:
            value = KEYS[name].parse(expand(wishes[name], variables))
            values[name] = resolve_dataset(value, declared) if name == "dataset" else value
        except InvalidWish as error:
            problems[name] = tuple(_blame(name, wishes[name], problem) for problem in error.problems)
        if name == "world":
            variables = msgspec.structs.replace(variables, world=values.get("world", variables.world))
    return values, [problem for name in KEYS for problem in problems.get(name, ())]


def resolve_dataset(text: str, declared: Mapping[str, str] = NOTHING) -> Reference:
    """The reference that a text means: a URI, an absolute path, or the name of a declared dataset.

    Raises:
        InvalidWish: Neither, with the declared names.
    """
    if "://" in text or text.startswith("/"):
        return parse_reference(text)
    if text in declared:
        return _declared_reference(text, declared[text])
    if not declared:
        remedy = "Write a URI such as s3://datasets/digits: the policy declares no datasets"
        raise InvalidWish.of("neither a URI nor a declared dataset", repr(text), remedy)
    names = f"Declared: {', '.join(sorted(declared))}"
    guess = did_you_mean(text, declared)
    raise InvalidWish.of(
        "neither a URI nor a declared dataset", repr(text), f"{guess} {names}" if guess else names
    )


def _declared_reference(name: str, text: str) -> Reference:
    try:
        return parse_reference(text)
    except InvalidWish as error:
        what = f"what the policy declares as dataset {name!r} is no reference"
        raise InvalidWish(
            *(Problem(f"{what}: {one.what}", one.measured, one.remedy) for one in error.problems)
        ) from error


def _blame(name: str, text: str, problem: Problem) -> Problem:
    """The problem with the annotation that it is about, and the value as its user wrote it."""
    shown = text if text and text in problem.measured else repr(text)
    measured = problem.measured if shown in problem.measured else f"{shown}: {problem.measured}"
    return Problem(f"{PREFIX}{name}: {problem.what}", measured.removesuffix(": "), problem.remedy)


def _cross(wishes: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong between wishes that are right by themselves."""
    # A misspelled key is said already; that it leaves nothing to do would be noise.
    if not any(direction in wishes for direction in DIRECTIONS) and all(name in KEYS for name in wishes):
        yield Problem(
            "the pod opts in and wishes nothing",
            ", ".join(f"{PREFIX}{name}: {text!r}" for name, text in sorted(wishes.items())),
            f"Add {PREFIX}dataset or {PREFIX}checkpoints",
        )
    for direction, names in BELONGS.items():
        for name in names if direction not in wishes else ():
            if name in wishes:
                remedy = f"Add {PREFIX}{direction} or remove it"
                what = f"{PREFIX}{name} is set without {PREFIX}{direction}"
                yield Problem(what, repr(wishes[name]), remedy)
    if all(direction in wishes for direction in DIRECTIONS):
        yield from _paths_clash(values)
        yield from _places_clash(values)
    yield from _paths_in_places(wishes, values)
    yield from _too_small(wishes, values)


def _paths_clash(values: Mapping[str, Any]) -> Iterator[Problem]:
    data = values.get("dataset-path", DATASET_PATH)
    checkpoints = values.get("checkpoint-path", CHECKPOINT_PATH)
    if _nested(data.split("/"), checkpoints.split("/")):
        yield Problem(
            f"{PREFIX}dataset-path and {PREFIX}checkpoint-path are the same or lie in each other",
            f"{data} and {checkpoints}",
            "Choose two directories side by side",
        )


def _places_clash(values: Mapping[str, Any]) -> Iterator[Problem]:
    """A dataset that checkpoints are written into changes; two services may hold the same names."""
    if "dataset" not in values or "checkpoints" not in values:
        return
    data, checkpoints = values["dataset"].uri, parse_uri(values["checkpoints"])
    endpoints = {_access(values, direction).endpoint for direction in DIRECTIONS}
    if len(endpoints) == 1 and _nested(_steps(data), _steps(checkpoints)):
        yield Problem(
            f"{PREFIX}dataset and {PREFIX}checkpoints are the same place or lie in each other",
            f"{data} and {checkpoints}",
            "Choose two prefixes side by side",
        )


def _paths_in_places(wishes: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Problem]:
    """A stage or a checkpoint directory that is one with local files that are read or written."""
    for direction in (name for name in DIRECTIONS if name in values):
        uri = values["dataset"].uri if direction == "dataset" else parse_uri(values["checkpoints"])
        for owner, name, default in PATHS if uri.scheme == "file" else ():
            path = values.get(name, default)
            if owner in wishes and _nested(uri.key.split("/") if uri.key else [], path.split("/")[1:]):
                said = repr(wishes[direction])
                place = said if str(uri) in said else f"{said}: {uri}"
                yield Problem(
                    f"{PREFIX}{direction} and {PREFIX}{name} are the same directory or lie in each other",
                    f"{place} and {path}",
                    "Choose two directories side by side",
                )


def _too_small(wishes: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Problem]:
    size, reference = values.get("dataset-size"), values.get("dataset")
    if size and reference and reference.bytes and reference.bytes > size:
        yield Problem(
            f"{PREFIX}dataset-size is less than {PREFIX}dataset holds",
            f"{wishes['dataset-size']!r}: the reference says {format_bytes(reference.bytes)}",
            f"Remove it, or write more than {quantity_at_least(reference.bytes)}",
        )


def _steps(uri: Uri) -> list[str]:
    return [uri.scheme, uri.bucket, *filter(None, uri.key.split("/"))]


def _nested(one: list[str], other: list[str]) -> bool:
    """Whether one sequence of steps begins with the other."""
    return all(left == right for left, right in zip(one, other, strict=False))


def _access(values: Mapping[str, Any], direction: str) -> Access:
    found = {
        field: values.get(f"{direction}-{field}", values.get(field)) for field in Access.__struct_fields__
    }
    return Access(**found)


def _spec(values: Mapping[str, Any]) -> FerrySpec:
    dataset = checkpoints = None
    if "dataset" in values:
        dataset = DatasetSpec(
            str(values["dataset"]),
            values.get("dataset-path", DATASET_PATH),
            values.get("dataset-size"),
            _access(values, "dataset"),
        )
    if "checkpoints" in values:
        checkpoints = CheckpointSpec(
            values["checkpoints"],
            values.get("checkpoint-path", CHECKPOINT_PATH),
            values.get("checkpoint-size"),
            values.get("keep-local", 1),
            values.get("restore", RESTORE_WORDS[0]),
            _access(values, "checkpoints"),
        )
    return FerrySpec(
        dataset,
        checkpoints,
        values.get("lineage"),
        values.get("world", 1),
        values.get("shm-size"),
        values.get("grace"),
        values.get("container"),
    )
