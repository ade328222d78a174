from collections.abc import Callable
from typing import Any

import pytest

from podferry.webhook.inject import InjectionOutcome, inject
from podferry.webhook.json_patch import apply
from podferry.webhook.policy import Policy
from podferry.webhook.resolve import Namespace

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


def test_a_proxy_that_comes_between_two_passes_is_left_alone(injected: Pod) -> None:
    injected["spec"]["containers"].append({"name": "istio-proxy"})
    injected["spec"]["initContainers"].insert(0, {"name": "istio-init"})
    decision = inject(injected, TEAM, POLICY)
    assert (decision.outcome, decision.patch) == (InjectionOutcome.INJECTED, ())


@pytest.mark.parametrize("name", ["podferry", "podferry-gate"])
def test_a_missing_container_is_reported(injected: Pod, controlled: Callable[[Pod], Pod], name: str) -> None:
    containers = injected["spec"]["initContainers"]
    injected["spec"]["initContainers"] = [one for one in containers if one["name"] != name]
    assert inject(injected, TEAM, POLICY).outcome is InjectionOutcome.DENIED
    decision = inject(controlled(injected), TEAM, POLICY)
    # The name of the gate is taken where it is still there.
    assert decision.outcome is (InjectionOutcome.DENIED if name == "podferry" else InjectionOutcome.REFUSED)
    assert "has only part of" in str(decision.problems[0])


def test_a_copy_with_other_annotations_is_reported(injected: Pod) -> None:
    injected["metadata"]["annotations"]["podferry.io/keep-local"] = "3"
    decision = inject(injected, TEAM, POLICY)
    assert decision.outcome is InjectionOutcome.DENIED
    assert "for other annotations" in str(decision.problems[0])


def test_a_copy_of_a_refused_pod_with_corrected_annotations(
    annotated_pod: Callable[..., Pod], controlled: Callable[[Pod], Pod]
) -> None:
    pod = controlled(annotated_pod(dataset="s3://datasets/digits"))
    refused = apply(pod, inject(pod, TEAM, POLICY).patch)
    assert inject(refused, TEAM, POLICY) == type(inject(refused, TEAM, POLICY))(InjectionOutcome.REFUSED)
    del refused["metadata"]["ownerReferences"]
    refused["metadata"]["annotations"]["podferry.io/dataset-size"] = "1Gi"
    decision = inject(refused, TEAM, POLICY)
    assert decision.outcome is InjectionOutcome.DENIED
    assert "Remove podferry's containers" in str(decision.problems[0])
