"""What a stamp proves, and to whom: `inject` on pods that were injected before."""

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podferry.webhook.injection.inject import Decision, InjectionOutcome, inject
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.stamp import CLOCK_SKEW, VALID_SECONDS, Signer
from podferry.webhook.policy.policy import Policy

Pod = dict[str, Any]
TEAM = Namespace("team")
NOW = 1_800_000_000
SIGNER = Signer((b"key",), NOW)
SIGNATURE = "podferry.io/signature"


@pytest.fixture
def signed(annotated_pod: Callable[..., Pod], controlled: Callable[[Pod], Pod], policy: Policy) -> Pod:
    """A Job's pod that a cluster's webhook has injected."""
    pod = controlled(annotated_pod())
    pod["metadata"]["ownerReferences"][0]["uid"] = "u-1"
    pod["metadata"]["generateName"] = pod["metadata"].pop("name") + "-"
    return apply(pod, inject(pod, TEAM, policy, SIGNER).patch)


@pytest.fixture
def seen_again(policy: Policy) -> Callable[..., Decision]:
    def decide(pod: Pod, signer: Signer = SIGNER, namespace: Namespace = TEAM) -> Decision:
        return inject(pod, namespace, policy, signer)

    return decide


def reason(decision: Decision) -> str:
    assert decision.outcome is InjectionOutcome.DENIED
    assert decision.patch == ()
    (problem,) = decision.problems
    assert problem.remedy.startswith("Create it from the manifest that it was made from; or remove")
    return str(problem)


def test_the_call_after_another_webhook_changes_nothing(
    signed: Pod, seen_again: Callable[..., Decision]
) -> None:
    for container in signed["spec"]["initContainers"]:
        container["image"] = f"mirror.example.com/{container['image']}"
        container["resources"]["limits"] = {"memory": "1Gi"}
        container["volumeMounts"] = [{"name": "token", "mountPath": "/token"}]
        container["terminationMessagePath"] = "/dev/termination-log"
        container["env"].append({"name": "AWS_ROLE_ARN", "value": "role"})
    signed["metadata"]["labels"] = {"mesh": "on"}
    signed["metadata"]["annotations"]["example.com/mesh"] = "on"
    assert seen_again(signed) == Decision(InjectionOutcome.INJECTED)


def test_the_policy_may_have_changed_since(signed: Pod) -> None:
    """Today's policy would refuse the pod, and make another spec of its annotations."""
    strict = Policy(
        image="other:2",
        allowed=msgspec.convert({"sources": [], "destinations": []}, type(Policy("").allowed)),
    )
    bare = {**signed, "metadata": {**signed["metadata"], "annotations": settings_of(signed)}}
    bare["spec"] = {"containers": [{"name": "train", "image": "pytorch"}]}
    assert inject(bare, TEAM, strict, SIGNER).outcome is InjectionOutcome.REFUSED
    assert inject(signed, TEAM, strict, SIGNER) == Decision(InjectionOutcome.INJECTED)


def settings_of(pod: Pod) -> dict[str, str]:
    stamps = {f"podferry.io/{name}" for name in ("status", "spec", "policy-hash", "signature")}
    return {name: text for name, text in pod["metadata"]["annotations"].items() if name not in stamps}


def test_other_replicas_and_earlier_keys_verify(signed: Pod, seen_again: Callable[..., Decision]) -> None:
    for age in (-CLOCK_SKEW, 0, VALID_SECONDS):
        signer = Signer((b"new", b"key"), NOW + age)
        assert seen_again(signed, signer).outcome is InjectionOutcome.INJECTED
    assert "not for this pod" in reason(seen_again(signed, Signer((b"new", b"newer"), NOW)))


@pytest.mark.parametrize("age", [-CLOCK_SKEW - 1, VALID_SECONDS + 1])
def test_an_old_stamp_is_a_copys(signed: Pod, seen_again: Callable[..., Decision], age: int) -> None:
    text = reason(seen_again(signed, Signer((b"key",), NOW + age)))
    assert "a copy of one that podferry's webhook injected earlier" in text
    assert f"{age} s ago" in text


def forged_spec(pod: Pod) -> None:
    pod["metadata"]["annotations"]["podferry.io/spec"] = "{}"


def other_settings(pod: Pod) -> None:
    pod["metadata"]["annotations"]["podferry.io/keep-local"] = "3"


def copied(pod: Pod) -> None:
    """What `kubectl debug --copy-to --keep-annotations` does."""
    pod["metadata"] = {"name": "digits-x7k2p-copy", "annotations": pod["metadata"]["annotations"]}


def of_another_owner(pod: Pod) -> None:
    pod["metadata"]["ownerReferences"][0]["uid"] = "u-2"


def other_program(pod: Pod) -> None:
    pod["spec"]["initContainers"][0]["args"].append("--run-id=other")


def other_spec_in_the_sidecar(pod: Pod) -> None:
    (one,) = (one for one in pod["spec"]["initContainers"][0]["env"] if one["name"] == "PODFERRY_SPEC")
    one["value"] = one["value"].replace("s3://checkpoints/team", "s3://checkpoints/other")


@pytest.mark.parametrize(
    "change",
    [forged_spec, other_settings, copied, of_another_owner, other_program, other_spec_in_the_sidecar],
)
def test_what_the_signature_covers(
    signed: Pod, seen_again: Callable[..., Decision], change: Callable[[Pod], None]
) -> None:
    change(signed)
    assert "podferry's stamps are not for this pod: it is a copy" in reason(seen_again(signed))


def test_another_namespace(signed: Pod, seen_again: Callable[..., Decision]) -> None:
    text = reason(seen_again(signed, namespace=Namespace("other")))
    assert f"{SIGNATURE} is not that of other/digits-" in text


@pytest.mark.parametrize(
    "signature",
    [
        None,
        "unsigned",
        "v1:",
        "v1:x:ab",
        "v2:1:ab",
        "v1:9999999999999999:ab",
        "v1:\N{FULLWIDTH DIGIT ONE}:ab",
    ],
)
def test_stamps_that_no_webhook_made(
    signed: Pod, seen_again: Callable[..., Decision], signature: str | None
) -> None:
    del signed["metadata"]["annotations"][SIGNATURE]
    if signature is not None:
        signed["metadata"]["annotations"][SIGNATURE] = signature
    assert "not from this cluster's webhook" in reason(seen_again(signed))


@pytest.mark.parametrize("signature", ["v1:1800000000:ab", "v1:1800000000:é"])
def test_a_made_up_signature(signed: Pod, seen_again: Callable[..., Decision], signature: str) -> None:
    signed["metadata"]["annotations"][SIGNATURE] = signature
    assert "not for this pod" in reason(seen_again(signed))


def test_a_refusal_is_signed_as_well(
    annotated_pod: Callable[..., Pod], controlled: Callable[[Pod], Pod], seen_again: Callable[..., Decision]
) -> None:
    """A tenant's own gate would let the trainer start without podferry's judgement."""
    pod = controlled(annotated_pod(datset="x"))
    refused = apply(pod, seen_again(pod).patch)
    assert seen_again(refused) == Decision(InjectionOutcome.REFUSED)
    forged = copy.deepcopy(refused)
    forged["spec"]["initContainers"][0]["args"] = ["--version"]
    assert "not for this pod" in reason(seen_again(forged))


def test_outside_a_cluster_stamps_are_marked(
    annotated_pod: Callable[..., Pod], policy: Policy, seen_again: Callable[..., Decision], signed: Pod
) -> None:
    pod = annotated_pod()
    offline = apply(pod, inject(pod, TEAM, policy).patch)
    assert offline["metadata"]["annotations"][SIGNATURE] == "unsigned"
    assert inject(offline, TEAM, policy) == Decision(InjectionOutcome.INJECTED)
    assert f"{SIGNATURE}: unsigned" in reason(seen_again(offline))
    assert "not for this pod" in reason(inject(signed, TEAM, policy))
