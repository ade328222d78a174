from collections.abc import Callable
from typing import Any

import pytest

from podferry.webhook.injection.inject import InjectionOutcome, inject
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import Policy

Pod = dict[str, Any]
TEAM = Namespace("team")
POLICY = Policy(image="registry.example.com/podferry:1")


def test_a_lost_restart_policy_is_put_back(injected: Pod) -> None:
    del injected["spec"]["initContainers"][0]["restartPolicy"]
    decision = inject(injected, TEAM, POLICY)
    assert decision.outcome is InjectionOutcome.INJECTED
    assert decision.patch == (
        {"op": "add", "path": "/spec/initContainers/0/restartPolicy", "value": "Always"},
    )


@pytest.mark.parametrize("name", ["podferry", "podferry-gate"])
def test_a_missing_container_is_reported(injected: Pod, controlled: Callable[[Pod], Pod], name: str) -> None:
    containers = injected["spec"]["initContainers"]
    injected["spec"]["initContainers"] = [one for one in containers if one["name"] != name]
    assert inject(injected, TEAM, POLICY).outcome is InjectionOutcome.DENIED
    decision = inject(controlled(injected), TEAM, POLICY)
    # The name of the gate is taken where it is still there.
    assert decision.outcome is (InjectionOutcome.DENIED if name == "podferry" else InjectionOutcome.REFUSED)
    assert "has only part of" in str(decision.problems[0])


def test_a_refused_pod_without_its_gate_is_reported(
    annotated_pod: Callable[..., Pod], controlled: Callable[[Pod], Pod]
) -> None:
    pod = controlled(annotated_pod(dataset="s3://datasets/digits"))
    refused = apply(pod, inject(pod, TEAM, POLICY).patch)
    assert inject(refused, TEAM, POLICY).patch == ()
    refused["spec"]["initContainers"] = []
    assert "only podferry.io/status" in str(inject(refused, TEAM, POLICY).problems[0])
