"""What is wrong between wishes that are right by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from podferry.contract.errors import Problem
from podferry.contract.keys import DIRECTIONS, KEYS
from podferry.contract.quantity import format_bytes, quantity_at_least
from podferry.contract.spec import (
    CHECKPOINT_PATH,
    DATASET_PATH,
    OUTPUT_PATH,
    PREFIX,
    Access,
    FerrySpec,
)
from podferry.contract.uri import Uri, parse_uri

PATHS = (
    ("dataset", "dataset-path", DATASET_PATH),
    ("checkpoints", "checkpoint-path", CHECKPOINT_PATH),
    ("outputs", "output-path", OUTPUT_PATH),
)
"""Directories of the pod: whose they are, their key, their default."""
BELONGS = {
    "dataset": ("dataset-path", "dataset-size", "dataset-secret", "dataset-endpoint", "dataset-region"),
    "checkpoints": (
        "checkpoint-path",
        "checkpoint-size",
        "checkpoints-secret",
        "checkpoints-endpoint",
        "checkpoints-region",
        "keep-local",
        "keep-remote",
        "restore",
        "complete",
        "upload-limit",
    ),
    "outputs": (
        "output-path",
        "output-size",
        "outputs-every",
        "outputs-secret",
        "outputs-endpoint",
        "outputs-region",
    ),
}
"""Keys that mean nothing without another."""
SIDE_BY_SIDE = "Choose two directories side by side"


def cross_problems(wishes: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Problem]:
    """All of it.

    Args:
        wishes: What stands on the pod, without the prefix.
        values: What of it could be parsed.
    """
    # A misspelled key is said already; that it leaves nothing to do would be noise.
    if not any(direction in wishes for direction in DIRECTIONS) and all(name in KEYS for name in wishes):
        yield Problem(
            "the pod opts in and wishes nothing",
            ", ".join(f"{PREFIX}{name}: {text!r}" for name, text in sorted(wishes.items())),
            f"Add {PREFIX}dataset, {PREFIX}checkpoints or {PREFIX}outputs",
        )
    yield from _stray(wishes)
    yield from _paths_clash(wishes, values)
    yield from _places_clash(values)
    yield from _paths_in_places(wishes, values)
    yield from _too_small(wishes, values)


def gang_problems(spec: FerrySpec, rank: int | None) -> Iterator[Problem]:
    """Why a pod cannot write its part of a checkpoint that several write together.

    Args:
        spec: Its wishes.
        rank: The pod's number in its training; None where nothing says.
    """
    if spec.world == 1 or spec.checkpoints is None:
        return
    if rank is None:
        yield Problem(
            f"{PREFIX}world is above 1, and nothing says which of them this pod is",
            str(spec.world),
            f"Train in an Indexed Job (completionMode: Indexed) or a JobSet, or set {PREFIX}world to 1",
        )
    elif rank >= spec.world:
        yield Problem(
            f"{PREFIX}world is not above the pod's rank, which counts from 0",
            f"world {spec.world}, rank {rank}",
            f"Set {PREFIX}world to the number of pods that train together",
        )


def access_of(values: Mapping[str, Any], direction: str) -> Access:
    """How a direction's store is reached: its own keys go before the common ones."""
    found = {
        field: values.get(f"{direction}-{field}", values.get(field)) for field in Access.__struct_fields__
    }
    return Access(**found)


def _stray(wishes: Mapping[str, str]) -> Iterator[Problem]:
    for direction, names in BELONGS.items():
        for name in names if direction not in wishes else ():
            if name in wishes:
                remedy = f"Add {PREFIX}{direction} or remove it"
                what = f"{PREFIX}{name} is set without {PREFIX}{direction}"
                yield Problem(what, repr(wishes[name]), remedy)


def _paths_clash(wishes: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Problem]:
    wished = [(name, values.get(name, default)) for owner, name, default in PATHS if owner in wishes]
    for (name, path), (other, there) in combinations(wished, 2):
        if _nested(path.split("/"), there.split("/")):
            what = f"{PREFIX}{name} and {PREFIX}{other} are the same or lie in each other"
            yield Problem(what, f"{path} and {there}", SIDE_BY_SIDE)


def _places_clash(values: Mapping[str, Any]) -> Iterator[Problem]:
    """A dataset that is written into changes, and outputs would replace what a commit lists.

    Two services may hold the same names.
    """
    places = [(direction, _place(values, direction)) for direction in DIRECTIONS if direction in values]
    for (one, here), (other, there) in combinations(places, 2):
        same = access_of(values, one).endpoint == access_of(values, other).endpoint
        if same and _nested(_steps(here), _steps(there)):
            what = f"{PREFIX}{one} and {PREFIX}{other} are the same place or lie in each other"
            yield Problem(what, f"{here} and {there}", "Choose two prefixes side by side")


def _paths_in_places(wishes: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Problem]:
    """A directory of the pod that is one with local files that are read or written."""
    for direction in (name for name in DIRECTIONS if name in values):
        uri = _place(values, direction)
        for owner, name, default in PATHS if uri.scheme == "file" else ():
            path = values.get(name, default)
            if owner in wishes and _nested(uri.key.split("/") if uri.key else [], path.split("/")[1:]):
                said = repr(wishes[direction])
                place = said if str(uri) in said else f"{said}: {uri}"
                what = f"{PREFIX}{direction} and {PREFIX}{name} are the same directory or lie in each other"
                yield Problem(what, f"{place} and {path}", SIDE_BY_SIDE)


def _too_small(wishes: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Problem]:
    size, reference = values.get("dataset-size"), values.get("dataset")
    if size and reference and reference.bytes and reference.bytes > size:
        yield Problem(
            f"{PREFIX}dataset-size is less than {PREFIX}dataset holds",
            f"{wishes['dataset-size']!r}: the reference says {format_bytes(reference.bytes)}",
            f"Remove it, or write more than {quantity_at_least(reference.bytes)}",
        )


def _place(values: Mapping[str, Any], direction: str) -> Uri:
    uri: Uri = values["dataset"].uri if direction == "dataset" else parse_uri(values[direction])
    return uri


def _steps(uri: Uri) -> list[str]:
    return [uri.scheme, uri.bucket, *filter(None, uri.key.split("/"))]


def _nested(one: list[str], other: list[str]) -> bool:
    """Whether one sequence of steps begins with the other."""
    return all(left == right for left, right in zip(one, other, strict=False))
