"""Reads a policy from a file: an InjectionPolicy, or the manifests that it is applied with."""

from __future__ import annotations

import yaml

from podferry.cli.pods.manifests import flattened
from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy.policy import Policy
from podferry.webhook.policy.policy_yaml import read_policy

POLICY_KEY = "policy.yaml"
"""Key of the ConfigMap in `deploy/base`."""


def read_policy_file(text: str, source: str) -> Policy:
    """Read an InjectionPolicy, or the one in a ConfigMap among manifests; raises `InvalidSpec`."""
    try:
        documents = [one for one in flattened(yaml.safe_load_all(text)) if isinstance(one, dict)]
    except (yaml.YAMLError, ValueError, RecursionError):
        return read_policy(text)  # it says where
    held = [(one.get("data") or {}).get(POLICY_KEY) for one in documents if one.get("kind") == "ConfigMap"]
    if not held:
        return read_policy(text)
    found = [one for one in held if isinstance(one, str)]
    if len(found) != 1:
        what = f"{source} does not have one policy"
        remedy = (
            f"Give an InjectionPolicy, or manifests with one ConfigMap that has it as text in {POLICY_KEY}"
        )
        raise InvalidSpec.of(what, f"{len(held)} ConfigMaps, {len(found)} policies", remedy)
    return read_policy(found[0])
