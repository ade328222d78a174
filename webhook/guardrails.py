"""Guardrails: which locations the policy lets pods read and write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from podferry.contract.errors import Problem
from podferry.contract.spec import PREFIX, FerrySpec
from podferry.contract.uri import Uri, parse_uri
from podferry.webhook.policy import Policy


def guardrail_problems(spec: FerrySpec, policy: Policy) -> Iterator[Problem]:
    """Every location that the policy does not allow."""
    allowed = policy.allowed
    for dataset in spec.datasets:
        source = _plain(dataset.parsed.uri)
        yield from _outside(dataset.key("dataset"), source, allowed.sources, "sources")
    if spec.checkpoints:
        destination = _plain(spec.checkpoints.parsed)
        yield from _outside("checkpoints", destination, allowed.destinations, "destinations")
        if "://" in spec.checkpoints.restore:
            source = _plain(parse_uri(spec.checkpoints.restore))
            yield from _outside("restore", source, allowed.sources, "sources")
    if spec.outputs:
        yield from _outside("outputs", _plain(spec.outputs.parsed), allowed.destinations, "destinations")
    sections = (
        *((one.key("dataset-endpoint"), one) for one in spec.datasets),
        ("checkpoints-endpoint", spec.checkpoints),
        ("outputs-endpoint", spec.outputs),
    )
    endpoints = {part.access.endpoint: key for key, part in sections if part and part.access.endpoint}
    for endpoint, key in endpoints.items():
        yield from _outside(key, str(endpoint), allowed.endpoints, "endpoints")


def allows(patterns: Sequence[str], location: str) -> bool:
    """Whether one of the globs matches; a path with `..` matches only `*`."""
    if "*" in patterns:
        return True
    if ".." in location.split("/"):
        return False
    return any(
        fnmatchcase(location, pattern) or (pattern.endswith("/") and f"{location}/".startswith(pattern))
        for pattern in patterns
    )


def _outside(key: str, location: str, patterns: Sequence[str], kind: str) -> Iterator[Problem]:
    if not allows(patterns, location):
        listed = ", ".join(patterns) or "none"
        remedy = f"Use one of the allowed {kind}: {listed}"
        yield Problem(f"{PREFIX}{key}: the policy does not allow this location", location, remedy)


def _plain(uri: Uri) -> str:
    """The URI without options, which only control access."""
    return f"{uri.scheme}://{uri.bucket}/{uri.key}"
