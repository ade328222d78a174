"""Reads the injection policy from YAML.

    apiVersion: podferry.io/v1alpha1
    kind: InjectionPolicy
    image: registry.example.com/podferry:0.1.0

Only `image` is required; `POLICY_KEYS` has all keys and their parsers. All problems are reported at once,
unknown keys with a suggestion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import yaml

from podferry.contract.annotations import resolve_dataset
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.quantity import parse_bytes, parse_quantity, parse_seconds
from podferry.contract.suggest import did_you_mean
from podferry.webhook.policy import Bounds, Defaults, OnInvalid, Policy

API_VERSION = "podferry.io/v1alpha1"
KIND = "InjectionPolicy"
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
REQUIRED_KEYS = ("apiVersion", "kind", "image")
Parser = Callable[[Any], Any]
Table = Mapping[str, "Parser | Table"]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidSpec.of("not a string", repr(value), "Write a string")
    return value.strip()


def _plain(value: Any) -> str:
    """Quantities and durations may be written as numbers."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidSpec.of("neither a string nor a number", repr(value), "Write for example 10Gi or 90s")
    return str(value)


def _bytes(value: Any) -> int:
    return parse_bytes(_plain(value))


def _seconds(value: Any) -> int:
    return parse_seconds(_plain(value))


def _cpu(value: Any) -> str:
    text = _plain(value)
    if parse_quantity(text) <= 0:
        raise InvalidSpec.of("CPU must be above zero", repr(text), "Write 100m")
    return text


def _port(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1024 <= value <= 65535:
        raise InvalidSpec.of("not an unprivileged port", repr(value), "Write 1024 to 65535")
    return value


def _one_of(words: tuple[str, ...]) -> Parser:
    def parse(value: Any) -> str:
        if value not in words:
            listed = f"Write one of {', '.join(words)}"
            raise InvalidSpec.of("unknown value", repr(value), did_you_mean(str(value), words, listed))
        return str(value)

    return parse


def _globs(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidSpec.of("not a list", repr(value), "Write a list of globs such as s3://datasets/*")
    return tuple(_text(item) for item in value)


def _datasets(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InvalidSpec.of("not a mapping", repr(value), "Write NAME: REFERENCE")
    return {_text(name): str(resolve_dataset(_text(text))) for name, text in value.items()}


POLICY_KEYS: Table = {
    "apiVersion": _one_of((API_VERSION,)),
    "kind": _one_of((KIND,)),
    "image": _text,
    "imagePullPolicy": _one_of(PULL_POLICIES),
    "agentPort": _port,
    "onInvalid": _one_of(tuple(OnInvalid)),
    "defaults": {
        "datasetSize": _bytes,
        "checkpointSize": _bytes,
        "outputSize": _bytes,
        "shmSize": _bytes,
        "grace": _seconds,
        "uploadRate": _bytes,
        "sidecarCpu": _cpu,
    },
    "bounds": {"sidecarMemory": _bytes, "trainerRaise": _bytes, "grace": _seconds},
    "allowed": {"sources": _globs, "destinations": _globs, "endpoints": _globs},
    "datasets": _datasets,
}
"""Every key of the document, with its parser."""


def read_policy(text: str) -> Policy:
    """Parse a policy. Raises `InvalidSpec` with everything that is wrong with it."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidSpec.of("the policy is not YAML", " ".join(str(error).split()), "Correct it") from error
    if not isinstance(document, dict):
        raise InvalidSpec.of(
            "the policy is not a mapping", repr(document), f"Write kind: {KIND} and its keys"
        )
    problems = [
        Problem(f"{name} is missing from the policy", "", f"Add {name}")
        for name in REQUIRED_KEYS
        if name not in document
    ]
    values = _read(document, POLICY_KEYS, "", problems)
    problems += _conflicts(values)
    InvalidSpec.raise_any(problems)
    return msgspec.convert({name: values[name] for name in values if name not in REQUIRED_KEYS[:2]}, Policy)


def _read(document: Any, table: Table, above: str, problems: list[Problem]) -> dict[str, Any]:
    """The values that parsed, by field name; appends the problems of the others to `problems`."""
    if not isinstance(document, dict):
        problems.append(
            Problem(f"{above.rstrip('.')}: not a mapping", repr(document), f"Keys: {', '.join(table)}")
        )
        return {}
    values: dict[str, Any] = {}
    for name, raw in document.items():
        parser = table.get(name)
        if parser is None:
            remedy = did_you_mean(str(name), table, f"Known: {', '.join(table)}")
            problems.append(Problem(f"{above}{name}: unknown key in the policy", "", remedy))
        elif isinstance(parser, Mapping):
            values[_field_name(name)] = _read(raw, parser, f"{above}{name}.", problems)
        else:
            try:
                values[_field_name(name)] = parser(raw)
            except InvalidSpec as error:
                problems += [
                    Problem(f"{above}{name}: {one.what}", one.measured, one.remedy) for one in error.problems
                ]
    return values


def _conflicts(values: Mapping[str, Any]) -> Iterator[Problem]:
    grace = values.get("defaults", {}).get("grace", Defaults().grace)
    bound = values.get("bounds", {}).get("grace", Bounds().grace)
    if grace > bound:
        yield Problem("defaults.grace is above bounds.grace", f"{grace} s and {bound} s", "Lower the default")


def _field_name(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
