"""Reads a pod's annotations into its ferry spec, and reports all problems at once.

Each value under `podferry.io/` is expanded (`podferry.contract.variable_substitution`) and parsed by its
key's parser (`podferry.contract.annotation_keys`); then settings are checked against each other
(`podferry.contract.cross_validation`). `dataset.NAME` and keys ending with `.NAME` configure that dataset.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from podferry.contract.annotation_bounds import character_problems, size_problems
from podferry.contract.annotation_keys import KEYS, NAME, STAMPS, known_keys, split_key
from podferry.contract.cross_validation import (
    SpecSection,
    access_of,
    cross_field_problems,
    is_mounted,
    sections_of,
)
from podferry.contract.dataset_selection import carried_selections
from podferry.contract.declared_datasets import NONE_DECLARED, Declared, resolve_dataset
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.hidden_secrets import hide_in_location, hide_secrets
from podferry.contract.spec import (
    MAX_DATASET_NAME_LENGTH,
    PREFIX,
    Access,
    CheckpointSpec,
    DatasetSpec,
    FerrySpec,
    MountedDataset,
    OutputSpec,
)
from podferry.contract.suggest import did_you_mean
from podferry.contract.variable_substitution import Variables, expand

SECTION_PREFIX = re.compile("(dataset|checkpoint|output)s?-")
MAX_CACHED_LENGTH = 1024
"""Characters of an annotation; larger ones would fill the memory."""
PREFIX_LENGTH = len(PREFIX)


def read_annotations(
    annotations: Mapping[str, str],
    variables: Variables | None = None,
    declared: Declared = NONE_DECLARED,
) -> FerrySpec | None:
    """The spec of a pod, or None if it has not opted in or has opted out.

    Args:
        annotations: All annotations of the pod, including those of others.
        variables: What their values may refer to.
        declared: Datasets declared by the policy: references by name.

    Raises:
        InvalidSpec: Everything that is wrong, in the order of the documentation's table.
    """
    settings = settings_of(annotations)
    if not settings or settings.get("inject") == "false":
        return None
    return read_settings(settings, variables, declared)


def read_settings(
    settings: Mapping[str, str],
    variables: Variables | None = None,
    declared: Declared = NONE_DECLARED,
) -> FerrySpec:
    """As `read_annotations`, of the settings of a pod that has opted in."""
    InvalidSpec.raise_any([*size_problems(settings), *character_problems(settings)])
    if any("$(" in text or len(text) > MAX_CACHED_LENGTH for text in settings.values()):
        return _read(settings, variables or Variables(), declared)
    return _read_without_variables(tuple(sorted(settings.items())), tuple(declared.items()))


@lru_cache(maxsize=256)
def _read_without_variables(
    settings: tuple[tuple[str, str], ...], declared: tuple[tuple[str, str | Problem], ...]
) -> FerrySpec:
    """As `_read`: thousands of pods have the annotations of a few templates."""
    return _read(dict(settings), Variables(), dict(declared))


def _read(settings: Mapping[str, str], variables: Variables, declared: Declared) -> FerrySpec:
    values, problems = _values(settings, variables, declared)
    carried, conflicts = carried_selections(values)
    conflicts += cross_field_problems(settings, values)
    InvalidSpec.raise_any(map(_without_secrets, (*_unknown(settings), *problems, *conflicts)))
    return _spec(values | carried)


def value_problems(
    annotations: Mapping[str, str], variables: Variables, declared: Declared = NONE_DECLARED
) -> list[Problem]:
    """What is wrong with each annotation by itself: others may be elsewhere, as in a part of a template."""
    settings = settings_of(annotations)
    return [*map(_without_secrets, (*_unknown(settings), *_values(settings, variables, declared)[1]))]


def settings_of(annotations: Mapping[str, str]) -> dict[str, str]:
    """The podferry annotations without their prefix, and without the stamps that podferry sets itself."""
    return {
        key[PREFIX_LENGTH:]: text
        for key, text in annotations.items()
        if key.startswith(PREFIX) and key[PREFIX_LENGTH:] not in STAMPS
    }


def _without_secrets(problem: Problem) -> Problem:
    """A value under a misspelled key, or under one that has no effect, may have a password as well."""
    return Problem(problem.what, hide_secrets(problem.measured), hide_secrets(problem.remedy))


def _unknown(settings: Mapping[str, str]) -> list[Problem]:
    known = known_keys(settings)
    return [_unknown_key(name, text, known) for name, text in sorted(settings.items()) if name not in known]


def _unknown_key(name: str, text: str, known: Iterable[str]) -> Problem:
    (key, dataset), shown = split_key(name), repr(hide_in_location(text))
    if "." in name and key in KEYS and not KEYS[key].per_dataset:
        remedy = f"Write {PREFIX}{key}: it applies to the pod, not to one dataset"
        return Problem(f"{PREFIX}{name}: the key does not take a dataset's name", shown, remedy)
    if "." in name and key in KEYS and not NAME.fullmatch(dataset):
        remedy = (
            f"Write {PREFIX}{key}.NAME, where NAME has up to {MAX_DATASET_NAME_LENGTH} of a-z, 0-9 and '-'"
        )
        return Problem(f"{PREFIX}{name}: {dataset!r} is not a valid dataset name", shown, remedy)
    # Compared without the prefix, which would make all of them look alike.
    remedy = did_you_mean(name, known, f"Known: {', '.join(KEYS)}")
    return Problem(f"{PREFIX}{name}: unknown annotation", shown, remedy)


def _values(
    settings: Mapping[str, str], variables: Variables, declared: Declared
) -> tuple[dict[str, Any], list[Problem]]:
    """The values that parsed, and the problems of the others. `world` is first: others may refer to it."""
    values: dict[str, Any] = {}
    problems: dict[str, list[Problem]] = {}
    known = known_keys(settings)
    for name in sorted((name for name in known if name in settings), key=lambda name: name != "world"):
        try:
            value = known[name].parse(expand(settings[name], variables))
            values[name] = resolve_dataset(value, declared) if known[name].name == "dataset" else value
        except InvalidSpec as error:
            problems[name] = [_attributed(name, settings[name], problem) for problem in error.problems]
        if name == "world":
            variables = msgspec.structs.replace(variables, world=values.get("world", variables.world))
    return values, [problem for name in known for problem in problems.get(name, ())]


def _attributed(name: str, text: str, problem: Problem) -> Problem:
    """The problem with its annotation's key, and with the value as the user wrote it, but for its secrets."""
    measured, remedy = (_hidden(text, shown) for shown in (problem.measured, problem.remedy))
    text = hide_in_location(text)
    shown = text if text and text in measured else repr(text)
    if measured == repr(text.strip()):  # parsed without the blanks around it
        measured = repr(text)
    elif shown not in measured:
        measured = f"{shown}: {measured}".removesuffix(": ")
    return Problem(f"{PREFIX}{name}: {problem.what}", measured, remedy)


def _hidden(text: str, quoting: str) -> str:
    """A text that may quote a value, without the secrets of both."""
    shown = hide_in_location(text)
    if shown != text:
        quoting = quoting.replace(repr(text), repr(shown)).replace(text, shown)
    return hide_secrets(quoting)


def _spec(values: Mapping[str, Any]) -> FerrySpec:
    sections = {one.key: one for one in sections_of(values) if one.key in values}
    of_datasets = [one for one in sections.values() if not one.is_destination]
    mounted = [one for one in of_datasets if is_mounted(one, values)]
    checkpoints, outputs = sections.get("checkpoints"), sections.get("outputs")
    return FerrySpec(
        datasets=tuple(_staged(one, values) for one in of_datasets if one not in mounted),
        checkpoints=checkpoints and CheckpointSpec(uri=values["checkpoints"], **_fields(checkpoints, values)),
        lineage=values.get("lineage"),
        world=values.get("world", 1),
        shm_size=values.get("shm-size"),
        grace=values.get("grace"),
        container=values.get("container"),
        mounted=tuple(_mounted(one, values) for one in mounted),
        outputs=outputs and OutputSpec(uri=values["outputs"], **_fields(outputs, values)),
    )


def _staged(section: SpecSection, values: Mapping[str, Any]) -> DatasetSpec:
    reference, name = str(values[section.key]), split_key(section.key)[1]
    return DatasetSpec(reference=reference, name=name, **_fields(section, values))


def _mounted(section: SpecSection, values: Mapping[str, Any]) -> MountedDataset:
    return MountedDataset(
        reference=str(values[section.key]),
        mode=values[section.own_key("mode")],
        path=values.get(section.path_key, section.default_path),
        name=split_key(section.key)[1],
    )


def _fields(section: SpecSection, values: Mapping[str, Any]) -> dict[str, Any]:
    """The section's fields in the spec: `checkpoint-size` is `size`. Absent ones keep their defaults."""
    keys = [key for key in section.keys if key in values and key != section.own_key("mode")]
    fields = {SECTION_PREFIX.sub("", split_key(key)[0]).replace("-", "_"): values[key] for key in keys}
    own = {name: value for name, value in fields.items() if name not in Access.__struct_fields__}
    path = values.get(section.path_key, section.default_path)
    return own | {"path": path, "access": access_of(values, section.key)}
