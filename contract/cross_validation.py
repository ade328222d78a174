"""Cross-field validation: settings that conflict with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from podferry.contract.annotation_keys import KEYS, dataset_names, known_keys, split_key
from podferry.contract.errors import Problem
from podferry.contract.mounted_dataset import mode_problems
from podferry.contract.quantity import format_bytes, quantity_at_least
from podferry.contract.schemes import canonical_place
from podferry.contract.spec import (
    CHECKPOINT_PATH,
    OUTPUT_PATH,
    PREFIX,
    Access,
    DatasetMode,
    FerrySpec,
    Shard,
    default_path,
)
from podferry.contract.suggest import did_you_mean
from podferry.contract.uri import Uri, parse_uri

DEPENDENT_KEYS = {
    "dataset": tuple(key.name for key in KEYS.values() if key.per_dataset and key.name != "dataset"),
    "checkpoints": (
        "checkpoint-path",
        "checkpoint-size",
        *(f"checkpoints-{field}" for field in Access.__struct_fields__),
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
        *(f"outputs-{field}" for field in Access.__struct_fields__),
    ),
}
"""Keys that have no effect without another."""


class SpecSection(NamedTuple):
    """A dataset, or a direction in which the pod writes.

    Attributes:
        key: `dataset`, `dataset.NAME`, `checkpoints` or `outputs`: the key that requests it.
        path_key: The key of its directory in the pod.
        default_path: The default of that directory.
        keys: Its other keys.
    """

    key: str
    path_key: str
    default_path: str
    keys: tuple[str, ...]

    @property
    def is_destination(self) -> bool:
        """Whether podferry writes to its location."""
        return split_key(self.key)[0] != "dataset"

    def own_key(self, key: str) -> str:
        """A dataset's variant of a key: `mode` as `mode.NAME`."""
        name = split_key(self.key)[1]
        return f"{key}.{name}" if name else key


def is_mounted(section: SpecSection, values: Mapping[str, Any]) -> bool:
    """Whether a dataset is mounted instead of staged."""
    return values.get(section.own_key("mode"), DatasetMode.COPY) is not DatasetMode.COPY


def sections_of(settings: Mapping[str, Any]) -> list[SpecSection]:
    """All sections that the keys name, requested or not."""
    names = dataset_names(settings)
    return [
        *(_dataset_section(name) for name in names),
        SpecSection("checkpoints", "checkpoint-path", CHECKPOINT_PATH, DEPENDENT_KEYS["checkpoints"]),
        SpecSection("outputs", "output-path", OUTPUT_PATH, DEPENDENT_KEYS["outputs"]),
    ]


def _dataset_section(name: str) -> SpecSection:
    suffix = f".{name}" if name else ""
    keys = tuple(key + suffix for key in DEPENDENT_KEYS["dataset"])
    return SpecSection(f"dataset{suffix}", f"dataset-path{suffix}", default_path(name), keys)


def cross_field_problems(settings: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Problem]:
    """All conflicts between settings; `values` has those that parsed."""
    sections, known = sections_of(settings), known_keys(settings)
    requested = [one for one in sections if one.key in settings]
    # A misspelled key is already reported; that it leaves nothing to do would be noise.
    if not requested and all(name in known for name in settings):
        yield Problem(
            "the pod opts in but requests nothing",
            ", ".join(f"{PREFIX}{name}: {text!r}" for name, text in sorted(settings.items())),
            f"Add {PREFIX}dataset, {PREFIX}checkpoints or {PREFIX}outputs",
        )
    yield from _stray_keys(sections, settings)
    yield from _overlapping_paths(requested, values)
    yield from _overlapping_locations(requested, values)
    yield from _paths_in_local_locations(requested, settings, values)
    yield from _undersized(requested, settings, values)
    for section in (one for one in requested if not one.is_destination and one.key in values):
        mode = values.get(section.own_key("mode"), DatasetMode.COPY)
        yield from mode_problems(section.key, mode, _location(values, section), settings)


def gang_problems(spec: FerrySpec, rank: int | None) -> Iterator[Problem]:
    """Why a pod of this rank cannot write its part of a checkpoint that several pods write together."""
    if spec.world == 1 or spec.checkpoints is None:
        return
    if rank is None:
        yield Problem(
            f"{PREFIX}world is above 1, but this pod has no rank",
            f"world {spec.world}",
            f"Train in an Indexed Job (completionMode: Indexed) or a JobSet, or set {PREFIX}world to 1",
        )
    elif rank >= spec.world:
        yield Problem(
            f"{PREFIX}world is not above the pod's rank, which counts from 0",
            f"world {spec.world}, rank {rank}",
            f"Set {PREFIX}world to the number of pods that train together",
        )


def access_of(values: Mapping[str, Any], direction: str) -> Access:
    """How to reach the store of a direction or dataset: its own keys override the shared ones."""
    key, dot, name = direction.partition(".")
    fields = Access.__struct_fields__
    return Access(**{one: values.get(f"{key}-{one}{dot}{name}", values.get(one)) for one in fields})


def _stray_keys(sections: list[SpecSection], settings: Mapping[str, str]) -> Iterator[Problem]:
    """Keys of sections that are not requested: usually a misspelled or missing dataset name."""
    datasets = [split_key(one.key)[1] for one in sections if not one.is_destination and one.key in settings]
    for section in sections:
        for name in section.keys if section.key not in settings else ():
            if name in settings:
                near = [] if section.is_destination else _near(name, datasets)
                remedy = did_you_mean(name, near, f"Add {PREFIX}{section.key} or remove it")
                what = f"{PREFIX}{name} is set without {PREFIX}{section.key}"
                yield Problem(what, repr(settings[name]), remedy)


def _near(name: str, datasets: list[str]) -> list[str]:
    """The same key for those of the requested datasets that `name` may be a misspelling of."""
    key, dataset = split_key(name)
    near = (one for one in datasets if not (one and dataset) or did_you_mean(dataset, [one]))
    return [f"{key}.{one}".rstrip(".") for one in near]


def _overlapping_paths(requested: list[SpecSection], values: Mapping[str, Any]) -> Iterator[Problem]:
    for one, other in combinations(requested, 2):
        path, other_path = _path(values, one), _path(values, other)
        if _nested(path.split("/"), other_path.split("/")):
            measured = f"{path} and {other_path}"
            yield _overlap(one.path_key, other.path_key, measured, "directory", "directories")


def _overlapping_locations(requested: list[SpecSection], values: Mapping[str, Any]) -> Iterator[Problem]:
    """Writing into a dataset changes it, and outputs would overwrite what a commit lists.

    Two services may hold the same names, and two datasets may share a location.
    """
    for one, other in combinations([section for section in requested if section.key in values], 2):
        here, there = _location(values, one), _location(values, other)
        same_service = access_of(values, one.key).endpoint == access_of(values, other.key).endpoint
        writes = one.is_destination or other.is_destination
        if same_service and writes and _nested(_steps(here), _steps(there)):
            yield _overlap(one.key, other.key, f"{here} and {there}", "location", "prefixes")


def _paths_in_local_locations(
    requested: list[SpecSection], settings: Mapping[str, str], values: Mapping[str, Any]
) -> Iterator[Problem]:
    """A pod directory that overlaps with local files that podferry reads or writes."""
    for section in (one for one in requested if one.key in values):
        uri = _location(values, section)
        for other in requested if uri.scheme == "file" else ():
            path = _path(values, other)
            if _nested(uri.key.split("/") if uri.key else [], path.split("/")[1:]):
                written = repr(settings[section.key])
                location = written if str(uri) in written else f"{written}: {uri}"
                measured = f"{location} and {path}"
                yield _overlap(section.key, other.path_key, measured, "directory", "directories")


def _overlap(key: str, other: str, measured: str, kind: str, kinds: str) -> Problem:
    what = f"{PREFIX}{key} and {PREFIX}{other} are the same {kind}, or one contains the other"
    return Problem(what, measured, f"Choose two separate {kinds}")


def _undersized(
    requested: list[SpecSection], settings: Mapping[str, str], values: Mapping[str, Any]
) -> Iterator[Problem]:
    for section in requested:
        key, dot, name = section.key.partition(".")
        size_key = f"dataset-size{dot}{name}"
        size, reference = values.get(size_key), values.get(section.key)
        if key != "dataset" or not size or not reference or not reference.bytes:
            continue
        shard = values.get(f"shard{dot}{name}", Shard(0, 1))
        need = -(-reference.bytes // shard.count)
        if need > size:
            largest = f", the largest of {shard.count} shards at least {format_bytes(need)}"
            yield Problem(
                f"{PREFIX}{size_key} is too small for {PREFIX}{section.key}",
                f"{settings[size_key]!r}: the reference says "
                f"{format_bytes(reference.bytes)}{largest if shard.count > 1 else ''}",
                f"Remove it, or write more than {quantity_at_least(need)}",
            )


def _path(values: Mapping[str, Any], section: SpecSection) -> str:
    path: str = values.get(section.path_key, section.default_path)
    return path


def _location(values: Mapping[str, Any], section: SpecSection) -> Uri:
    value = values[section.key]
    uri: Uri = parse_uri(value) if section.is_destination else value.uri
    return uri


def _steps(uri: Uri) -> list[str]:
    return [*canonical_place(uri.scheme, uri.bucket), *filter(None, uri.key.split("/"))]


def _nested(one: list[str], other: list[str]) -> bool:
    """Whether one path is the other or contains it."""
    return all(left == right for left, right in zip(one, other, strict=False))
