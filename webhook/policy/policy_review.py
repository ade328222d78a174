"""Validates the policy's ConfigMap at `kubectl apply`: an invalid one would have no effect."""

from __future__ import annotations

import msgspec

from podferry.contract.errors import InvalidSpec, Problem
from podferry.webhook.pod.pod_json import Json
from podferry.webhook.policy.policy_yaml import read_policy

POLICY_KEY = "policy.yaml"
"""Of the ConfigMap: the name of the policy's file."""


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


def policy_problems(config_map: Json) -> tuple[Problem, ...]:
    """Everything that is wrong with the policy in a ConfigMap; empty if nothing is.

    Raises `InvalidSpec` if it is not a ConfigMap, which the API server would not send.
    """
    try:
        data = msgspec.convert(config_map, _ConfigMap).data or {}
    except msgspec.ValidationError as error:
        raise InvalidSpec.of("the ConfigMap is malformed", str(error)) from error
    if POLICY_KEY not in data:
        found = ", ".join(sorted(data)) or "none"
        return (Problem(f"the ConfigMap has no key {POLICY_KEY}", f"keys: {found}", "Put the policy there"),)
    try:
        read_policy(data[POLICY_KEY])
    except InvalidSpec as error:
        return error.problems
    return ()
