"""Reads the injection policy from YAML.

    apiVersion: podferry.io/v1alpha1
    kind: InjectionPolicy
    image: registry.example.com/podferry:0.1.0

Only `image` is required; `POLICY_KEYS` has all keys and their parsers. All problems are reported at once,
unknown keys with a suggestion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.quantity import format_bytes, parse_quantity
from podferry.webhook.policy.policy import MIB, Bounds, Defaults, Enforcement, OnInvalid, Policy
from podferry.webhook.policy.policy_document import read_document
from podferry.webhook.policy.policy_table import ListOf, Table, read_table
from podferry.webhook.policy.policy_values import (
    ANNOTATIONS,
    BOOL,
    BYTES,
    CA_BUNDLE,
    CPU,
    DATASETS,
    ENDPOINTS,
    HOSTS,
    IMAGE_REFERENCE,
    LOCATIONS,
    NAMES,
    PORT,
    PROXY,
    RULE_NAME,
    SECONDS,
    one_of,
)
from podferry.webhook.policy.rule_validation import guardrail_conflicts, rule_conflicts
from podferry.webhook.policy.selector_values import COUNT, LABELS, NAMESPACES, OWNERS

API_VERSION = "podferry.io/v1alpha1"
KIND = "InjectionPolicy"
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
MIN_GATE_MEMORY = 32 * MIB
"""Bytes. Its resident set is 22 MiB."""
REQUIRED_KEYS = ("apiVersion", "kind", "image")
SELECTED_NAMESPACES: Table = {"namespaces": NAMESPACES, "namespaceLabels": LABELS}
ALLOWED: Table = {"sources": LOCATIONS, "destinations": LOCATIONS, "endpoints": ENDPOINTS}
POLICY_KEYS: Table = {
    "apiVersion": one_of((API_VERSION,)),
    "kind": one_of((KIND,)),
    "image": IMAGE_REFERENCE,
    "imagePullPolicy": one_of(PULL_POLICIES),
    "agentPort": PORT,
    "enforcement": one_of(tuple(Enforcement)),
    "onInvalid": one_of(tuple(OnInvalid)),
    "defaults": {
        "datasetSize": BYTES,
        "checkpointSize": BYTES,
        "outputSize": BYTES,
        "shmSize": BYTES,
        "grace": SECONDS,
        "uploadRate": BYTES,
        "sidecarCpu": CPU,
        "sidecarCpuLimit": CPU,
        "gateCpu": CPU,
        "gateMemory": BYTES,
    },
    "bounds": {"sidecarMemory": BYTES, "trainerRaise": BYTES, "grace": SECONDS},
    "allowed": ALLOWED,
    "guardrails": ListOf({"match": SELECTED_NAMESPACES, "allowed": ALLOWED}, ("match", "allowed")),
    "datasets": DATASETS,
    "caBundle": CA_BUNDLE,
    "proxy": {"https": PROXY, "http": PROXY, "noProxy": HOSTS},
    "imageVolumes": BOOL,
    "networkSidecars": NAMES,
    "rules": ListOf(
        {
            "name": RULE_NAME,
            "match": {**SELECTED_NAMESPACES, "labels": LABELS, "owners": OWNERS, "gpus": COUNT},
            "annotations": ANNOTATIONS,
            "enforcement": one_of((Enforcement.INJECT, Enforcement.AUDIT)),
        },
        ("name", "match", "annotations"),
    ),
}
"""Every key of the document, with the kind of its value."""


def read_policy(text: str) -> Policy:
    """Parse a policy. Raises `InvalidSpec` with everything that is wrong with it."""
    document = read_document(text)
    problems: list[Problem] = []
    values = read_table(document, POLICY_KEYS, "", problems, REQUIRED_KEYS)
    problems += _conflicts(document, values)
    InvalidSpec.raise_any(problems)
    return msgspec.convert({name: values[name] for name in values if name not in REQUIRED_KEYS[:2]}, Policy)


def _conflicts(document: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[Problem]:
    defaults = msgspec.convert(values.get("defaults", {}), Defaults)
    yield from _resource_conflicts(defaults)
    grace = defaults.grace
    bound = values.get("bounds", {}).get("grace", Bounds().grace)
    if grace > bound:
        yield Problem("defaults.grace is above bounds.grace", f"{grace} s and {bound} s", "Lower the default")
    yield from rule_conflicts(document.get("rules"), values.get("rules", ()), values.get("datasets", {}))
    yield from guardrail_conflicts(document.get("guardrails"))


def _resource_conflicts(defaults: Defaults) -> Iterator[Problem]:
    limit = defaults.sidecar_cpu_limit
    for name, request in (("sidecarCpu", defaults.sidecar_cpu), ("gateCpu", defaults.gate_cpu)):
        if limit is not None and parse_quantity(request) > parse_quantity(limit):
            what = f"defaults.{name} is above defaults.sidecarCpuLimit"
            yield Problem(what, f"{request} and {limit}", "Raise the limit or lower the request")
    if defaults.gate_memory < MIN_GATE_MEMORY:
        what = "defaults.gateMemory: the gate would be OOM-killed"
        yield Problem(
            what, format_bytes(defaults.gate_memory), f"Write {format_bytes(MIN_GATE_MEMORY)} or more"
        )
