"""A pod's annotations → its ferry spec. All that is wrong is said at once.

A key belongs to us when it begins with `podferry.io/`. Each value has its variables expanded, is parsed by
the table in `podferry.contract.annotation_keys`, and then the wishes are checked against each other
(`podferry.contract.cross_validation`). `dataset.NAME` and the keys that end with `.NAME` are those of one
dataset more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from podferry.contract.annotation_keys import KEYS, NAME, STAMPS, known_keys, split_key
from podferry.contract.annotation_values import RESTORE_WORDS
from podferry.contract.cross_validation import access_of, cross_field_problems, sections_of
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.reference import Reference, parse_reference
from podferry.contract.spec import (
    CHECKPOINT_PATH,
    FILE_MODE,
    MAX_DATASET_NAME_LENGTH,
    OUTPUT_PATH,
    PREFIX,
    CheckpointSpec,
    Completion,
    DatasetSpec,
    FerrySpec,
    Medium,
    OutputSpec,
    Unpack,
    default_path,
)
from podferry.contract.substitution import Variables, expand
from podferry.contract.suggest import did_you_mean

NONE_DECLARED: Mapping[str, str] = MappingProxyType({})


def read_annotations(
    annotations: Mapping[str, str],
    variables: Variables | None = None,
    declared: Mapping[str, str] = NONE_DECLARED,
) -> FerrySpec | None:
    """What a pod wishes, None where it has not opted in or has opted out.

    Args:
        annotations: All of the pod's, also those of others.
        variables: What its values may refer to.
        declared: Datasets that the policy declares: references by name.

    Raises:
        InvalidSpec: Everything that is wrong, in the order of the documentation's table.
    """
    wishes = settings_of(annotations)
    if not wishes or wishes.get("inject") == "false":
        return None
    values, problems = _values(wishes, variables or Variables(), declared)
    InvalidSpec.raise_any([*_unknown(wishes), *problems, *cross_field_problems(wishes, values)])
    return _spec(values)


def settings_of(annotations: Mapping[str, str]) -> dict[str, str]:
    """Our annotations without the prefix and without the stamps that podferry sets itself."""
    ours = {key.removeprefix(PREFIX): text for key, text in annotations.items() if key.startswith(PREFIX)}
    return {name: text for name, text in ours.items() if name not in STAMPS}


def _unknown(wishes: Mapping[str, str]) -> list[Problem]:
    known = known_keys(wishes)
    return [_unknown_key(name, text, known) for name, text in sorted(wishes.items()) if name not in known]


def _unknown_key(name: str, text: str, known: Iterable[str]) -> Problem:
    key, dataset = split_key(name)
    if "." in name and key in KEYS and not KEYS[key].named:
        remedy = f"Write {PREFIX}{key}: it is the pod's, not a dataset's"
        return Problem(f"{PREFIX}{name}: the key takes no name", repr(text), remedy)
    if "." in name and key in KEYS and not NAME.fullmatch(dataset):
        remedy = (
            f"Write {PREFIX}{key}.NAME, with a NAME of at most {MAX_DATASET_NAME_LENGTH} of a-z, 0-9 and '-'"
        )
        return Problem(f"{PREFIX}{name}: {dataset!r} is no dataset's name", repr(text), remedy)
    # Compared without the prefix, which would make all of them look alike.
    remedy = did_you_mean(name, known, f"Known: {', '.join(KEYS)}")
    return Problem(f"{PREFIX}{name}: unknown annotation", repr(text), remedy)


def _values(
    wishes: Mapping[str, str], variables: Variables, declared: Mapping[str, str]
) -> tuple[dict[str, Any], list[Problem]]:
    """What could be parsed, and what could not. `world` comes first, since others may refer to it."""
    values: dict[str, Any] = {}
    problems: dict[str, tuple[Problem, ...]] = {}
    known = known_keys(wishes)
    for name in sorted(known, key=lambda name: name != "world"):
        if name not in wishes:
            continue
        try:
            value = known[name].parse(expand(wishes[name], variables))
            values[name] = resolve_dataset(value, declared) if known[name].name == "dataset" else value
        except InvalidSpec as error:
            problems[name] = tuple(_blame(name, wishes[name], problem) for problem in error.problems)
        if name == "world":
            variables = msgspec.structs.replace(variables, world=values.get("world", variables.world))
    return values, [problem for name in known for problem in problems.get(name, ())]


def resolve_dataset(text: str, declared: Mapping[str, str] = NONE_DECLARED) -> Reference:
    """The reference that a text means: a URI, an absolute path, or the name of a declared dataset.

    Raises:
        InvalidSpec: Neither, with the declared names.
    """
    if "://" in text or text.startswith("/"):
        return parse_reference(text)
    if text in declared:
        return _declared_reference(text, declared[text])
    if not declared:
        remedy = "Write a URI such as s3://datasets/digits: the policy declares no datasets"
        raise InvalidSpec.of("neither a URI nor a declared dataset", repr(text), remedy)
    names = f"Declared: {', '.join(sorted(declared))}"
    guess = did_you_mean(text, declared)
    raise InvalidSpec.of(
        "neither a URI nor a declared dataset", repr(text), f"{guess} {names}" if guess else names
    )


def _declared_reference(name: str, text: str) -> Reference:
    try:
        return parse_reference(text)
    except InvalidSpec as error:
        what = f"what the policy declares as dataset {name!r} is no reference"
        raise InvalidSpec(
            *(Problem(f"{what}: {one.what}", one.measured, one.remedy) for one in error.problems)
        ) from error


def _blame(name: str, text: str, problem: Problem) -> Problem:
    """The problem with the annotation that it is about, and the value as its user wrote it."""
    shown = text if text and text in problem.measured else repr(text)
    measured = problem.measured if shown in problem.measured else f"{shown}: {problem.measured}"
    return Problem(f"{PREFIX}{name}: {problem.what}", measured.removesuffix(": "), problem.remedy)


def _dataset(values: Mapping[str, Any], key: str) -> DatasetSpec:
    """The dataset that a key asks for: `dataset` or `dataset.NAME`."""
    name = split_key(key)[1]
    own = {one: values[full] for one in KEYS if (full := f"{one}.{name}".rstrip(".")) in values}
    return DatasetSpec(
        str(own["dataset"]),
        own.get("dataset-path", default_path(name)),
        own.get("dataset-size"),
        access_of(values, key),
        name,
        own.get("include", ()),
        own.get("exclude", ()),
        own.get("file-mode", FILE_MODE),
        own.get("unpack", Unpack.AUTO),
        own.get("shard"),
        own.get("medium", Medium.MEMORY),
    )


def _spec(values: Mapping[str, Any]) -> FerrySpec:
    asked = [part.key for part in sections_of(values) if not part.written and part.key in values]
    checkpoints = outputs = None
    if "checkpoints" in values:
        checkpoints = CheckpointSpec(
            values["checkpoints"],
            values.get("checkpoint-path", CHECKPOINT_PATH),
            values.get("checkpoint-size"),
            values.get("keep-local", 1),
            values.get("restore", RESTORE_WORDS[0]),
            access_of(values, "checkpoints"),
            values.get("keep-remote"),
            values.get("complete", Completion.AUTO),
            values.get("upload-limit"),
        )
    if "outputs" in values:
        outputs = OutputSpec(
            values["outputs"],
            values.get("output-path", OUTPUT_PATH),
            values.get("output-size"),
            values.get("outputs-every"),
            access_of(values, "outputs"),
        )
    return FerrySpec(
        tuple(_dataset(values, key) for key in asked),
        checkpoints,
        values.get("lineage"),
        values.get("world", 1),
        values.get("shm-size"),
        values.get("grace"),
        values.get("container"),
        outputs,
    )
