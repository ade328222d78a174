import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podferry.webhook.admission.decide import concerns, decide
from podferry.webhook.injection.inject import InjectionOutcome
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_json import annotations_of
from podferry.webhook.pod.stamp import Signer
from podferry.webhook.policy.policy import Enforcement, InjectionRule, PodSelector, Policy

Pod = dict[str, Any]
TEAM = Namespace("team")
SIGNER = Signer((b"key",), 1000)
MARK = "a field of the pod"


@pytest.fixture
def ruled(policy: Policy) -> Policy:
    """The policy with a rule for every pod of the namespace."""
    annotations = {"checkpoints": "s3://results/$(namespace)", "checkpoint-size": "1Mi"}
    rule = InjectionRule("results", PodSelector(namespaces=("team",)), annotations)
    return msgspec.structs.replace(policy, rules=(rule,))


def plain() -> Pod:
    return {"metadata": {"name": "digits"}, "spec": {"containers": [{"name": "train", "image": "pytorch"}]}}


def test_only_a_policy_with_rules_concerns_pods_without_annotations(
    policy: Policy, ruled: Policy, annotated_pod: Callable[..., Pod]
) -> None:
    assert [concerns(plain(), one) for one in (policy, ruled)] == [False, True]
    assert concerns(annotated_pod(), policy)


def test_what_is_the_pods_own_is_in_no_patch(policy: Policy, annotated_pod: Callable[..., Pod]) -> None:
    """So numbers and texts that JSON writes in several ways stay byte for byte as they are."""

    def marked(value: Any) -> Any:
        if isinstance(value, dict):
            strings = all(isinstance(one, str) for one in value.values())
            own = {} if strings else {"unknown": [MARK, 10**30, 1.0, -0.0, "\u00e9\0"]}
            return own | {key: marked(one) for key, one in value.items()}
        return [marked(one) for one in value] if isinstance(value, list) else value

    pod = annotated_pod(
        checkpoints="s3://c/team", checkpoint_size="1Mi", dataset="s3://d/team", dataset_size="1Mi"
    )
    container = pod["spec"]["containers"][0]
    container |= {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}, "unknown": MARK}]}
    container |= {
        "volumeMounts": [{"name": "v", "mountPath": "/v", "unknown": 1.0}],
        "securityContext": {"a": 1},
    }
    pod["spec"] |= {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "initContainers": [{"name": "first", "image": "i", "resources": {}}],
    }
    decision = decide(marked(pod), TEAM, policy, SIGNER)
    assert decision.outcome is InjectionOutcome.INJECTED
    assert MARK not in json.dumps(decision.patch)


def test_a_pod_by_rule_is_not_decided_again(ruled: Policy) -> None:
    """Another webhook may have changed it, the admin the rule."""
    made = apply(plain(), decide(plain(), TEAM, ruled, SIGNER).patch)
    assert annotations_of(made)["podferry.io/rule"] == "results"
    other = msgspec.structs.replace(ruled.rules[0], annotations={"outputs": "s3://results/o"})
    for policy in (ruled, msgspec.structs.replace(ruled, rules=(other,))):
        again = decide(made, TEAM, policy, SIGNER)
        assert (again.outcome, again.patch) == (InjectionOutcome.INJECTED, ())


@pytest.mark.parametrize("enforcement", [Enforcement.AUDIT, Enforcement.DISABLED])
def test_an_injected_pod_stays_injected_under_any_enforcement(
    ruled: Policy, annotated_pod: Callable[..., Pod], enforcement: Enforcement
) -> None:
    made = apply(annotated_pod(), decide(annotated_pod(), TEAM, ruled, SIGNER).patch)
    changed = msgspec.structs.replace(ruled, enforcement=enforcement)
    assert decide(made, TEAM, changed, SIGNER).outcome is InjectionOutcome.INJECTED


@pytest.mark.parametrize("enforcement", [Enforcement.AUDIT, Enforcement.DISABLED])
def test_under_audit_not_even_forged_stamps_stop_a_pod(
    policy: Policy, annotated_pod: Callable[..., Pod], enforcement: Enforcement
) -> None:
    pod = annotated_pod()
    pod["metadata"]["annotations"]["podferry.io/status"] = "injected"
    assert decide(pod, TEAM, policy, SIGNER).outcome is InjectionOutcome.DENIED
    changed = msgspec.structs.replace(policy, enforcement=enforcement)
    decision = decide(pod, TEAM, changed, SIGNER)
    made = apply(pod, decision.patch)
    assert annotations_of(made)["podferry.io/status"] == str(decision.outcome)
    assert made["spec"] == pod["spec"]
    assert decide(made, TEAM, changed, SIGNER).patch == ()


def test_a_pod_cannot_declare_itself_audited(policy: Policy, annotated_pod: Callable[..., Pod]) -> None:
    pod = annotated_pod()
    pod["metadata"]["annotations"]["podferry.io/status"] = "audited"
    decision = decide(pod, TEAM, policy, SIGNER)
    assert decision.outcome is InjectionOutcome.INJECTED
    made = apply(pod, decision.patch)
    assert annotations_of(made)["podferry.io/status"] == "injected"
    assert decide(made, TEAM, policy, SIGNER).patch == ()


def test_a_status_that_is_none_is_replaced(ruled: Policy) -> None:
    """As anybody may write; it neither stops the rule nor a second call."""
    pod = plain()
    pod["metadata"]["annotations"] = {"podferry.io/status": "done"}
    made = apply(pod, decide(pod, TEAM, ruled, SIGNER).patch)
    assert annotations_of(made)["podferry.io/status"] == "injected"
    assert decide(made, TEAM, ruled, SIGNER).patch == ()


def test_a_copy_of_an_audited_pod_is_injected_without_the_reason(ruled: Policy) -> None:
    audit = msgspec.structs.replace(ruled, enforcement=Enforcement.AUDIT)
    copied = apply(plain(), decide(plain(), TEAM, audit, SIGNER).patch)
    assert annotations_of(copied)["podferry.io/reason"] == "would be injected"
    made = apply(copied, decide(copied, TEAM, ruled, SIGNER).patch)
    found = annotations_of(made)
    assert (found["podferry.io/status"], found["podferry.io/reason"]) == ("injected", "")
    assert decide(made, TEAM, ruled, SIGNER).patch == ()


def test_a_rule_of_defaults_leaves_other_pods_alone(
    policy: Policy, annotated_pod: Callable[..., Pod]
) -> None:
    rule = InjectionRule("sizes", PodSelector(namespaces=("team",)), {"checkpoint-size": "9Mi"})
    sizes = msgspec.structs.replace(policy, rules=(rule,))
    assert decide(plain(), TEAM, sizes).outcome is InjectionOutcome.UNTOUCHED
    decision = decide(annotated_pod(checkpoints="s3://results"), TEAM, sizes)
    assert (decision.outcome, decision.rule) == (InjectionOutcome.INJECTED, "sizes")


def test_a_long_reason_is_cut(ruled: Policy) -> None:
    pod = plain()
    pod["spec"]["containers"] = [{"name": f"container-{index:04d}"} for index in range(200)]
    decision = decide(pod, TEAM, ruled)
    assert decision.outcome is InjectionOutcome.SKIPPED
    assert len(annotations_of(apply(pod, decision.patch))["podferry.io/reason"]) == 1000
