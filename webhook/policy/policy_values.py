"""The kinds of values in the injection policy: how each is parsed, and its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from podferry.contract.annotation_values import parse_endpoint, parse_size
from podferry.contract.ca_certificates import parse_certificates
from podferry.contract.declared_datasets import resolve_dataset
from podferry.contract.errors import InvalidSpec
from podferry.contract.location_globs import ANY
from podferry.contract.mounted_dataset import IMAGE_NAME
from podferry.contract.quantity import parse_quantity, parse_seconds
from podferry.contract.spec import PREFIX
from podferry.contract.suggest import did_you_mean
from podferry.contract.variable_substitution import Variables, expand, refuse_braces

MAX_CA_BUNDLE_BYTES = 64 * 1024
"""It becomes a variable of the sidecar, and Linux allows 128 KiB for one; system bundles are larger."""
MAX_IMAGE_BYTES = 512
"""A name has at most 255, a tag 128. Source: the distribution project's references."""
MAX_PROXY_BYTES = 2048
MAX_NO_PROXY_BYTES = 8 * 1024
"""Of all hosts together: they leave room for the rest of the pod, which has at most 1.5 MiB."""
MIN_PORT, MAX_PORT = 1024, 65535
"""Ports that need no privileges."""
FILLED = {"type": "string", "pattern": r"\S"}
SCALAR = {"type": ["string", "number"], "pattern": r"\S"}
HOST = re.compile(r"[^\s,]+")
RULE_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
NAMESPACE_VARIABLE = "$(namespace)"
SCHEME_END = "://"
BUCKET_ALONE = re.compile(r"[^*?\[/]+://[^*?\[/]+")
OPEN_END = re.compile(r"\$\(namespace\)[^/]*[*?\[]")
OPEN_START = re.compile(r"[*?\]][^/]*\$\(namespace\)")
"""A wildcard in the same part of a path: the glob of `team` would match `team-b`, or `my-team`."""
OPEN = (
    (OPEN_END, "begins", f"{NAMESPACE_VARIABLE}/"),
    (OPEN_START, "ends", f"/{NAMESPACE_VARIABLE}/"),
)
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


def matching(pattern: re.Pattern[str]) -> dict[str, Any]:
    """The JSON Schema of a text that the pattern matches completely."""
    return {"type": "string", "pattern": f"^{pattern.pattern}$"}


def one_of(words: tuple[str, ...]) -> PolicyValue:
    """One of these words."""

    def parse(value: Any) -> str:
        if value not in words:
            known = [str(word) for word in words]
            remedy = did_you_mean(str(value), known, f"Write one of {', '.join(known)}")
            raise InvalidSpec.of("unknown value", repr(value), remedy)
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


def _short(text: str, limit: int, remedy: str) -> str:
    """The text, a part of every pod. Raises `InvalidSpec` if it is longer than `limit` bytes."""
    size = len(text.encode(errors="surrogatepass"))
    if size > limit:
        raise InvalidSpec.of("too long for every pod", f"{size} bytes; at most {limit}", remedy)
    return text


def _image(value: Any) -> str:
    text = _short(_text(value), MAX_IMAGE_BYTES, "Write a shorter reference")
    if not IMAGE_NAME.fullmatch(text):
        remedy = "Write for example registry.example/podferry:0.1.0"
        raise InvalidSpec.of("not an image reference, so no pod could start", repr(text), remedy)
    return text


def _scalar(value: Any) -> str:
    """Quantities and durations may be written as numbers."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidSpec.of("neither a string nor a number", repr(value), "Write for example 10Gi or 90s")
    return str(value)


def _bytes(value: Any) -> int:
    return parse_size(_scalar(value))


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
    return parse_endpoint(_short(text, MAX_PROXY_BYTES, "Write http://HOST:PORT"))


def _hosts(value: Any) -> tuple[str, ...]:
    """Hosts, domains and networks, which a variable of the sidecar separates by commas."""
    hosts: tuple[str, ...] = list_of("such as [.svc, 10.0.0.0/8]").parse(value)
    _short(",".join(hosts), MAX_NO_PROXY_BYTES, "Write domains and networks instead of hosts")
    for host in hosts:
        if not HOST.fullmatch(host):
            raise InvalidSpec.of("not a host, domain or network", repr(host), "Write one for each item")
    return hosts


def _ca_bundle(value: Any) -> str:
    """The certificates of a PEM text, without what is between them."""
    found = parse_certificates(_text(value))
    return _short("\n".join([*found, ""]), MAX_CA_BUNDLE_BYTES, "Write only your own CA certificates")


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


def _globs(value: Any) -> tuple[str, ...]:
    """Globs of addresses, which may contain `$(namespace)`."""
    globs: tuple[str, ...] = list_of("of globs such as s3://datasets/*").parse(value)
    for glob in globs:
        if SCHEME_END not in glob and glob != ANY:
            remedy = "Write it with its scheme, such as s3://results/ or https://store.example"
            raise InvalidSpec.of("the glob matches no address", repr(glob), remedy)
        refuse_braces(glob)
        expand(glob, Variables(namespace=GUARDED))
        for pattern, part, remedy in OPEN:
            if pattern.search(glob):
                what = f"the glob also allows namespaces whose name {part} alike"
                raise InvalidSpec.of(what, repr(glob), f"Write {remedy}")
    return globs


def _locations(value: Any) -> tuple[str, ...]:
    """Globs of what is in a bucket."""
    globs = _globs(value)
    for glob in globs:
        if BUCKET_ALONE.fullmatch(glob):
            raise InvalidSpec.of("the glob matches nothing in the bucket", repr(glob), f"Write {glob}/")
    return globs


def _rule_name(value: Any) -> str:
    text = _text(value)
    if not RULE_LABEL.fullmatch(text):
        remedy = "Write up to 40 of a-z, 0-9 and '-'"
        raise InvalidSpec.of("not a valid name of a rule", repr(text), remedy)
    return text


IMAGE_REFERENCE = PolicyValue(_image, FILLED)
BYTES = PolicyValue(_bytes, SCALAR)
SECONDS = PolicyValue(_seconds, SCALAR)
CPU = PolicyValue(_cpu, SCALAR)
PORT = PolicyValue(_port, {"type": "integer", "minimum": MIN_PORT, "maximum": MAX_PORT})
BOOL = PolicyValue(_bool, {"type": "boolean"})
PROXY = PolicyValue(_proxy, {"type": "string", "pattern": "^[^@]+$"})
CA_BUNDLE = PolicyValue(_ca_bundle, FILLED)
DATASETS = PolicyValue(_datasets, {"type": "object", "additionalProperties": FILLED})
ANNOTATIONS = PolicyValue(
    _annotations, {"type": "object", "minProperties": 1, "additionalProperties": SCALAR}
)
NAMES = list_of("of names such as [egress-proxy]")
HOSTS = PolicyValue(_hosts, {"type": "array", "items": matching(HOST)})
LOCATIONS = PolicyValue(_locations, {"type": "array", "items": FILLED})
ENDPOINTS = PolicyValue(_globs, LOCATIONS.schema)
RULE_NAME = PolicyValue(_rule_name, matching(RULE_LABEL))
