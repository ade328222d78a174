"""What is wrong between wishes that are right by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from podferry.contract.annotation_keys import KEYS, known_keys, split_key
from podferry.contract.errors import Problem
from podferry.contract.quantity import format_bytes, quantity_at_least
from podferry.contract.spec import (
    CHECKPOINT_PATH,
    OUTPUT_PATH,
    PREFIX,
    Access,
    FerrySpec,
    Shard,
    default_path,
)
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import Uri, parse_uri

DEPENDENT_KEYS = {
    "dataset": tuple(key.name for key in KEYS.values() if key.named and key.name != "dataset"),
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
SEPARATE_REMEDY = "Choose two directories side by side"


class SpecSection(NamedTuple):
    """A dataset, or a direction in which the pod writes.

    Attributes:
        key: `dataset`, `dataset.NAME`, `checkpoints` or `outputs`: the key that asks for it.
        path_key: The key of its directory in the pod.
        path: That directory's default.
        keys: Its other keys.
    """

    key: str
    path_key: str
    path: str
    keys: tuple[str, ...]

    @property
    def written(self) -> bool:
        """Whether its place is written to."""
        return split_key(self.key)[0] != "dataset"


def sections_of(wishes: Mapping[str, Any]) -> list[SpecSection]:
    """All parts that the keys tell of, whether the key that asks for one is there or not."""
    names = sorted({name for key, name in map(split_key, known_keys(wishes)) if key == "dataset"})
    return [
        *(_dataset(name) for name in names),
        SpecSection("checkpoints", "checkpoint-path", CHECKPOINT_PATH, DEPENDENT_KEYS["checkpoints"]),
        SpecSection("outputs", "output-path", OUTPUT_PATH, DEPENDENT_KEYS["outputs"]),
    ]


def _dataset(name: str) -> SpecSection:
    end = f".{name}" if name else ""
    keys = tuple(key + end for key in DEPENDENT_KEYS["dataset"])
    return SpecSection(f"dataset{end}", f"dataset-path{end}", default_path(name), keys)


def cross_field_problems(wishes: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Problem]:
    """All of it.

    Args:
        wishes: What stands on the pod, without the prefix.
        values: What of it could be parsed.
    """
    parts, known = sections_of(wishes), known_keys(wishes)
    # A misspelled key is said already; that it leaves nothing to do would be noise.
    if not any(part.key in wishes for part in parts) and all(name in known for name in wishes):
        yield Problem(
            "the pod opts in and wishes nothing",
            ", ".join(f"{PREFIX}{name}: {text!r}" for name, text in sorted(wishes.items())),
            f"Add {PREFIX}dataset, {PREFIX}checkpoints or {PREFIX}outputs",
        )
    wished = [part for part in parts if part.key in wishes]
    yield from _stray(parts, wishes)
    yield from _paths_clash(wished, values)
    yield from _places_clash(wished, values)
    yield from _paths_in_places(wished, wishes, values)
    yield from _too_small(wished, wishes, values)


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
    """How a direction's store is reached: its own keys go before the common ones.

    Args:
        values: What stands on the pod, parsed.
        direction: `dataset`, `dataset.NAME`, `checkpoints` or `outputs`.
    """
    key, dot, name = direction.partition(".")
    found = {
        field: values.get(f"{key}-{field}{dot}{name}", values.get(field))
        for field in Access.__struct_fields__
    }
    return Access(**found)


def _stray(parts: list[SpecSection], wishes: Mapping[str, str]) -> Iterator[Problem]:
    """Keys of what is not asked for: most often a dataset's name is misspelled or left out."""
    asked = [split_key(part.key)[1] for part in parts if not part.written and part.key in wishes]
    for part in parts:
        for name in part.keys if part.key not in wishes else ():
            if name in wishes:
                near = _near(name, asked) if not part.written else []
                remedy = did_you_mean(name, near, f"Add {PREFIX}{part.key} or remove it")
                what = f"{PREFIX}{name} is set without {PREFIX}{part.key}"
                yield Problem(what, repr(wishes[name]), remedy)


def _near(name: str, asked: list[str]) -> list[str]:
    """The same key for those of the asked datasets that the name may have meant."""
    key, dataset = split_key(name)
    return [
        f"{key}.{one}".rstrip(".") for one in asked if not (one and dataset) or did_you_mean(dataset, [one])
    ]


def _paths_clash(wished: list[SpecSection], values: Mapping[str, Any]) -> Iterator[Problem]:
    for one, other in combinations(wished, 2):
        path, there = _path(values, one), _path(values, other)
        if _nested(path.split("/"), there.split("/")):
            what = f"{PREFIX}{one.path_key} and {PREFIX}{other.path_key} are the same or lie in each other"
            yield Problem(what, f"{path} and {there}", SEPARATE_REMEDY)


def _places_clash(wished: list[SpecSection], values: Mapping[str, Any]) -> Iterator[Problem]:
    """A dataset that is written into changes, and outputs would replace what a commit lists.

    Two services may hold the same names, and two datasets may be read from one place.
    """
    for one, other in combinations([part for part in wished if part.key in values], 2):
        here, there = _place(values, one), _place(values, other)
        same = access_of(values, one.key).endpoint == access_of(values, other.key).endpoint
        if same and (one.written or other.written) and _nested(_steps(here), _steps(there)):
            what = f"{PREFIX}{one.key} and {PREFIX}{other.key} are the same place or lie in each other"
            yield Problem(what, f"{here} and {there}", "Choose two prefixes side by side")


def _paths_in_places(
    wished: list[SpecSection], wishes: Mapping[str, str], values: Mapping[str, Any]
) -> Iterator[Problem]:
    """A directory of the pod that is one with local files that are read or written."""
    for part in (one for one in wished if one.key in values):
        uri = _place(values, part)
        for other in wished if uri.scheme == "file" else ():
            path = _path(values, other)
            if _nested(uri.key.split("/") if uri.key else [], path.split("/")[1:]):
                said = repr(wishes[part.key])
                place = said if str(uri) in said else f"{said}: {uri}"
                both = f"{PREFIX}{part.key} and {PREFIX}{other.path_key}"
                what = f"{both} are the same directory or lie in each other"
                yield Problem(what, f"{place} and {path}", SEPARATE_REMEDY)


def _too_small(
    wished: list[SpecSection], wishes: Mapping[str, str], values: Mapping[str, Any]
) -> Iterator[Problem]:
    for part in wished:
        key, dot, name = part.key.partition(".")
        size, reference = values.get(f"dataset-size{dot}{name}"), values.get(part.key)
        if key != "dataset" or not size or not reference or not reference.bytes:
            continue
        shard = values.get(f"shard{dot}{name}", Shard(0, 1))
        need = -(-reference.bytes // shard.count)
        if need > size:
            part_of = (
                f", the largest of {shard.count} parts at least {format_bytes(need)}"
                if shard.count > 1
                else ""
            )
            yield Problem(
                f"{PREFIX}dataset-size{dot}{name} is less than {PREFIX}{part.key} holds",
                f"{wishes[f'dataset-size{dot}{name}']!r}: the reference says "
                f"{format_bytes(reference.bytes)}{part_of}",
                f"Remove it, or write more than {quantity_at_least(need)}",
            )


def _path(values: Mapping[str, Any], part: SpecSection) -> str:
    path: str = values.get(part.path_key, part.path)
    return path


def _place(values: Mapping[str, Any], part: SpecSection) -> Uri:
    uri: Uri = parse_uri(values[part.key]) if part.written else values[part.key].uri
    return uri


def _steps(uri: Uri) -> list[str]:
    return [uri.scheme, uri.bucket, *filter(None, uri.key.split("/"))]


def _nested(one: list[str], other: list[str]) -> bool:
    """Whether one sequence of steps begins with the other."""
    return all(left == right for left, right in zip(one, other, strict=False))
