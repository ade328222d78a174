import copy
from collections.abc import Callable
from typing import Any

import pytest

from podferry.webhook.injection.inject import InjectionOutcome, inject
from podferry.webhook.injection.raised_memory import MEMORY_STAMP
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.stamp import Signer
from podferry.webhook.policy.policy import Policy

Pod = dict[str, Any]
TEAM = Namespace("team")
SIGNER = Signer((b"key",), 1_000_000)


@pytest.fixture
def injected(annotated_pod: Callable[..., Pod], policy: Policy) -> Pod:
    """With checkpoints of 100 MiB, and memory of 2 GiB before it was raised."""
    pod = annotated_pod()
    memory = {"memory": "2Gi"}
    pod["spec"]["containers"].append({"name": "other", "image": "other"})
    pod["metadata"]["annotations"]["podferry.io/container"] = "train"
    pod["spec"]["containers"][0]["resources"] = {"limits": memory, "requests": {**memory, "cpu": "1"}}
    return apply(pod, inject(pod, TEAM, policy, SIGNER).patch)


def memory(pod: Pod) -> tuple[str | None, ...]:
    resources = pod["spec"]["containers"][0]["resources"]
    return tuple(resources[kind].get("memory") for kind in ("limits", "requests"))


def seen_again(pod: Pod, policy: Policy) -> Pod:
    decision = inject(pod, TEAM, policy, SIGNER)
    assert decision.outcome is InjectionOutcome.INJECTED
    made = apply(pod, decision.patch)
    assert inject(made, TEAM, policy, SIGNER).patch == ()
    return made


def test_what_another_webhook_has_lowered_is_raised_again(injected: Pod, policy: Policy) -> None:
    raised = memory(injected)
    autoscaled = copy.deepcopy(injected)
    autoscaled["spec"]["containers"][0]["resources"] = {
        "limits": {"memory": "1500Mi"},
        "requests": {"memory": "1000000k", "cpu": "25m"},
    }
    again = seen_again(autoscaled, policy)
    assert memory(again) == raised
    assert again["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "25m"


def test_more_memory_stays(injected: Pod, policy: Policy) -> None:
    autoscaled = copy.deepcopy(injected)
    autoscaled["spec"]["containers"][0]["resources"]["limits"] = {"memory": "64Gi"}
    assert memory(seen_again(autoscaled, policy))[0] == "64Gi"


def test_a_limit_that_was_removed_stays_removed(injected: Pod, policy: Policy) -> None:
    autoscaled = copy.deepcopy(injected)
    del autoscaled["spec"]["containers"][0]["resources"]["limits"]["memory"]
    assert memory(seen_again(autoscaled, policy)) == (None, memory(injected)[1])


def test_other_containers_first(injected: Pod, policy: Policy) -> None:
    """Webhooks may insert containers before the trainer: it is known by its name."""
    moved = copy.deepcopy(injected)
    moved["spec"]["containers"].insert(0, {"name": "proxy", "resources": {"limits": {"memory": "1Mi"}}})
    assert seen_again(moved, policy) == moved


def test_a_pod_whose_memory_is_not_raised_has_no_stamp(
    annotated_pod: Callable[..., Pod], policy: Policy
) -> None:
    pod = annotated_pod()
    made = apply(pod, inject(pod, TEAM, policy, SIGNER).patch)
    assert MEMORY_STAMP not in made["metadata"]["annotations"]
