"""What the golden pods do not show: meshes whose webhooks run after podferry's."""

from collections.abc import Callable
from typing import Any

import jsonpatch
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.webhook.injection.inject import InjectionOutcome, inject
from podferry.webhook.injection.network_sidecars import KNOWN_PROXIES, restore_order
from podferry.webhook.pod.json_patch import Draft, apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import Policy

Pod = dict[str, Any]
TEAM = Namespace("team")
POLICY = Policy(image="registry.example.com/podferry:1")
NATIVE = {"image": "proxy", "restartPolicy": "Always"}


def names(pod: Pod) -> list[str]:
    return [one["name"] for one in pod["spec"]["initContainers"]]


def reviewed(pod: Pod, policy: Policy = POLICY) -> Pod:
    """The pod after the second call of the webhook, which changes nothing if it is called again."""
    decision = inject(pod, TEAM, policy)
    assert decision.outcome is InjectionOutcome.INJECTED
    made = apply(pod, decision.patch)
    assert made == jsonpatch.apply_patch(pod, list(decision.patch))
    assert inject(made, TEAM, policy).patch == ()
    return made


@pytest.mark.parametrize("name", KNOWN_PROXIES)
def test_a_native_proxy_that_comes_later_is_put_before_the_agent(injected: Pod, name: str) -> None:
    """A mesh may add its own at the end, as linkerd does, or at the beginning, as istio does."""
    containers = injected["spec"]["initContainers"]
    containers += [{"name": "proxy-init", "image": "proxy"}, {"name": name, **NATIVE}]
    assert names(reviewed(injected)) == ["proxy-init", name, "podferry", "podferry-gate"]


def test_a_native_proxy_at_the_beginning_needs_no_change(injected: Pod) -> None:
    injected["spec"]["initContainers"].insert(0, {"name": "istio-proxy", **NATIVE})
    assert inject(injected, TEAM, POLICY).patch == ()


def test_a_proxy_of_the_policy_counts_and_others_do_not(injected: Pod) -> None:
    injected["spec"]["initContainers"].append({"name": "egress", **NATIVE})
    assert names(reviewed(injected)) == ["podferry", "egress", "podferry-gate"]
    policy = msgspec.structs.replace(POLICY, network_sidecars=("egress",))
    assert names(reviewed(injected, policy)) == ["egress", "podferry", "podferry-gate"]


def test_an_init_container_of_a_proxys_name_that_ends_is_no_proxy(injected: Pod) -> None:
    injected["spec"]["initContainers"].insert(1, {"name": "istio-proxy", "image": "proxy"})
    assert inject(injected, TEAM, POLICY).patch == ()


@pytest.mark.parametrize("name", KNOWN_PROXIES)
def test_an_ordinary_proxy_that_comes_later_is_refused_with_the_remedy(injected: Pod, name: str) -> None:
    injected["spec"]["containers"].insert(0, {"name": name, "image": "proxy"})
    decision = inject(injected, TEAM, POLICY)
    assert decision.outcome is InjectionOutcome.DENIED
    (problem,) = decision.problems
    assert name in problem.measured
    assert problem.remedy == KNOWN_PROXIES[name].native


@pytest.mark.parametrize("name", KNOWN_PROXIES)
def test_a_pod_that_excludes_traffic_from_its_proxy_is_warned(
    annotated_pod: Callable[..., Pod], name: str
) -> None:
    for annotation in KNOWN_PROXIES[name].exclusions:
        pod = annotated_pod()
        pod["metadata"]["annotations"][annotation] = "9000"
        pod["spec"]["containers"].append({"name": name, "image": "proxy"})
        pod["metadata"]["annotations"]["podferry.io/container"] = "train"
        decision = inject(pod, TEAM, POLICY)
        assert decision.outcome is InjectionOutcome.INJECTED
        assert any(name in one and annotation in one for one in decision.warnings)


def test_the_gate_that_refuses_stays_first(
    annotated_pod: Callable[..., Pod], controlled: Callable[[Pod], Pod]
) -> None:
    pod = controlled(annotated_pod(dataset="s3://datasets/digits"))
    refused = apply(pod, inject(pod, TEAM, POLICY).patch)
    refused["spec"]["initContainers"].append({"name": "linkerd-proxy", **NATIVE})
    decision = inject(refused, TEAM, POLICY)
    assert (decision.outcome, decision.patch) == (InjectionOutcome.REFUSED, ())


@given(
    st.permutations(
        ["podferry", "podferry-gate", "istio-proxy", "linkerd-proxy", "kuma-sidecar", "one", "two", "three"]
    )
)
def test_any_order(order: list[str]) -> None:
    """Others keep their order; the agent never comes later than it must."""
    containers = [{"name": one, **({} if one == "one" else NATIVE)} for one in order]
    draft = Draft({"spec": {"initContainers": containers}})
    restore_order(draft, POLICY)
    found = names(draft.document)
    ours = {"podferry", "podferry-gate"}
    assert [one for one in found if one not in ours] == [one for one in order if one not in ours]
    assert found[-1] == "podferry-gate"
    last = max(found.index(one) for one in KNOWN_PROXIES if one in found)
    assert found.index("podferry") > last
    assert found.index("podferry") == last + 1 or order.index("podferry") > last
    assert len(draft.operations) <= 2
