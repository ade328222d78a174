"""The kinds of values in the injection policy: how each is parsed, and its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from podferry.contract.annotation_values import parse_endpoint
from podferry.contract.annotations import resolve_dataset
from podferry.contract.ca_certificates import parse_certificates
from podferry.contract.errors import InvalidSpec
from podferry.contract.quantity import parse_bytes, parse_quantity, parse_seconds
from podferry.contract.spec import PREFIX
from podferry.contract.suggest import did_you_mean
from podferry.contract.variable_substitution import Variables, expand

MAX_CA_BUNDLE_BYTES = 64 * 1024
"""It becomes a variable of the sidecar, and Linux allows 128 KiB for one; system bundles are larger."""
MIN_PORT, MAX_PORT = 1024, 65535
"""Ports that need no privileges."""
FILLED = {"type": "string", "pattern": r"\S"}
SCALAR = {"type": ["string", "number"], "pattern": r"\S"}


NAMESPACE_GLOB = re.compile(r"[a-z0-9*?-]+")
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
NAMESPACE_VARIABLE = "$(namespace)"
OPEN_END = re.compile(r"\$\(namespace\)[^/]*[*?\[]")
"""A wildcard in the same part of a path: the glob of `team` would match `team-b`."""
GUARDED = "a"
"""Any namespace: whether a variable is known does not depend on its value."""


class PolicyValue(NamedTuple):
    """A kind of value.

    Attributes:
        parse: Converts what YAML has read to the policy's value; raises `InvalidSpec`.
        schema: Its JSON Schema, which rejects what is wrong in type or spelling.
    """

    parse: Callable[[Any], Any]
    schema: Mapping[str, Any]


def _matching(pattern: re.Pattern[str]) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{pattern.pattern}$"}


def one_of(words: tuple[str, ...]) -> PolicyValue:
    """One of these words."""

    def parse(value: Any) -> str:
        if value not in words:
            listed = f"Write one of {', '.join(words)}"
            raise InvalidSpec.of("unknown value", repr(value), did_you_mean(str(value), words, listed))
        return str(value)

    return PolicyValue(parse, {"enum": [str(word) for word in words]})


def list_of(example: str) -> PolicyValue:
    """A list of strings, for which there is an example."""

    def parse(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise InvalidSpec.of("not a list", repr(value), f"Write a list {example}")
        return tuple(_text(item) for item in value)

    return PolicyValue(parse, {"type": "array", "items": FILLED})


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidSpec.of("not a string", repr(value), "Write a string")
    return value.strip()


def _scalar(value: Any) -> str:
    """Quantities and durations may be written as numbers."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidSpec.of("neither a string nor a number", repr(value), "Write for example 10Gi or 90s")
    return str(value)


def _bytes(value: Any) -> int:
    return parse_bytes(_scalar(value))


def _seconds(value: Any) -> int:
    return parse_seconds(_scalar(value))


def _cpu(value: Any) -> str:
    text = _scalar(value)
    if parse_quantity(text) <= 0:
        raise InvalidSpec.of("CPU must be above zero", repr(text), "Write 100m")
    return text


def _port(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not MIN_PORT <= value <= MAX_PORT:
        raise InvalidSpec.of("not an unprivileged port", repr(value), f"Write {MIN_PORT} to {MAX_PORT}")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidSpec.of("not an integer above 0", repr(value), "Write for example 1")
    return value


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidSpec.of("neither true nor false", repr(value), "Write true or false")
    return value


def _proxy(value: Any) -> str:
    """A URL; a password would be visible in every pod."""
    text = _text(value)
    if "@" in text:
        remedy = "Leave the password out here; a pod's Secret may have it in the key HTTPS_PROXY"
        raise InvalidSpec.of("a proxy's URL must not have a password", "", remedy)
    return parse_endpoint(text)


def _ca_bundle(value: Any) -> str:
    """The certificates of a PEM text, without what is between them."""
    found = parse_certificates(_text(value))
    bundle = "\n".join([*found, ""])
    if len(bundle) > MAX_CA_BUNDLE_BYTES:
        measured = f"{len(found)} certificates, {len(bundle)} bytes; at most {MAX_CA_BUNDLE_BYTES}"
        raise InvalidSpec.of("too large for every pod", measured, "Write only your own CA certificates")
    return bundle


def _datasets(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InvalidSpec.of("not a mapping", repr(value), "Write NAME: REFERENCE")
    return {_text(name): str(resolve_dataset(_text(text))) for name, text in value.items()}


def _annotations(value: Any) -> dict[str, str]:
    """Podferry's annotations, with or without their prefix, by name without it."""
    if not isinstance(value, dict) or not value:
        raise InvalidSpec.of(
            "not a mapping of annotations", repr(value), "Write dataset: s3://datasets/digits"
        )
    return {_text(name).removeprefix(PREFIX): _scalar(text) for name, text in value.items()}


def _namespaces(value: Any) -> tuple[str, ...]:
    globs: tuple[str, ...] = NAMES.parse(value)
    for glob in globs:
        if not NAMESPACE_GLOB.fullmatch(glob):
            remedy = "Write a namespace's name; * stands for any characters and ? for one"
            raise InvalidSpec.of("not a namespace", repr(glob), remedy)
    return globs


def _locations(value: Any) -> tuple[str, ...]:
    """Globs of locations, which may contain `$(namespace)`."""
    globs: tuple[str, ...] = list_of("of globs such as s3://datasets/*").parse(value)
    for glob in globs:
        expand(glob, Variables(namespace=GUARDED))
        if OPEN_END.search(glob):
            remedy = f"Write {NAMESPACE_VARIABLE}/"
            raise InvalidSpec.of(
                "the glob also allows namespaces whose name begins alike", repr(glob), remedy
            )
    return globs


def _rule_name(value: Any) -> str:
    text = _text(value)
    if not LABEL.fullmatch(text):
        remedy = "Write up to 40 of a-z, 0-9 and '-'"
        raise InvalidSpec.of("not a valid name of a rule", repr(text), remedy)
    return text


def _labels(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise InvalidSpec.of("not a mapping of labels", repr(value), 'Write NAME: "VALUE"')
    return {_text(name): text for name, text in value.items()}


TEXT = PolicyValue(_text, FILLED)
BYTES = PolicyValue(_bytes, SCALAR)
SECONDS = PolicyValue(_seconds, SCALAR)
CPU = PolicyValue(_cpu, SCALAR)
PORT = PolicyValue(_port, {"type": "integer", "minimum": MIN_PORT, "maximum": MAX_PORT})
COUNT = PolicyValue(_count, {"type": "integer", "minimum": 1})
BOOL = PolicyValue(_bool, {"type": "boolean"})
PROXY = PolicyValue(_proxy, {"type": "string", "pattern": "^[^@]+$"})
CA_BUNDLE = PolicyValue(_ca_bundle, FILLED)
DATASETS = PolicyValue(_datasets, {"type": "object", "additionalProperties": FILLED})
LABELS = PolicyValue(_labels, {"type": "object", "additionalProperties": {"type": "string"}})
ANNOTATIONS = PolicyValue(
    _annotations, {"type": "object", "minProperties": 1, "additionalProperties": SCALAR}
)
NAMES = list_of("such as [Job, PyTorchJob]")
HOSTS = list_of("such as [.svc, 10.0.0.0/8]")
NAMESPACES = PolicyValue(_namespaces, {"type": "array", "items": _matching(NAMESPACE_GLOB)})
LOCATIONS = PolicyValue(_locations, {"type": "array", "items": FILLED})
RULE_NAME = PolicyValue(_rule_name, _matching(LABEL))
