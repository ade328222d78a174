import json
from collections.abc import Callable
from typing import Any

import pytest

from podferry.contract.annotations import read_annotations
from podferry.contract.declared_datasets import resolve_dataset
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import PREFIX
from podferry.webhook.injection.caches import NEAR, caches_of, declared_datasets
from podferry.webhook.injection.inject import InjectionOutcome, inject
from podferry.webhook.pod.json_patch import apply, find
from podferry.webhook.pod.known_cache import KnownCache
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import AllowedLocations, Policy

Pod = dict[str, Any]
DIGITS = KnownCache("digits", "s3://datasets/digits", "http://10.0.0.7:8091", "podferry")
OWN = KnownCache("mine", "s3://datasets/digits", "http://10.0.0.9:8091", "team")
POLICY = Policy(image="registry.example.com/podferry:1")


def injected(pod: Pod, *caches: KnownCache, policy: Policy = POLICY) -> tuple[InjectionOutcome, Pod]:
    decision = inject(pod, Namespace("team", caches=caches), policy)
    return decision.outcome, apply(pod, decision.patch)


def annotated(annotated_pod: Callable[..., Pod], **settings: str) -> Pod:
    pod = annotated_pod()
    kept = {f"{PREFIX}{name.replace('_', '-')}": text for name, text in settings.items()}
    pod["metadata"]["annotations"] = kept
    return pod


def sidecar(pod: Pod) -> Pod:
    return next(one for one in pod["spec"]["initContainers"] if one["name"] == "podferry")


def test_a_pod_takes_its_dataset_from_the_cache(annotated_pod: Callable[..., Pod]) -> None:
    pod = annotated(annotated_pod, dataset="s3://datasets/digits", dataset_size="1Gi")
    outcome, made = injected(pod, DIGITS)
    assert outcome is InjectionOutcome.INJECTED
    arguments = sidecar(made)["args"]
    assert "--dataset-cache=http://10.0.0.7:8091" in arguments
    assert "--cache-token=/podferry/secrets/cache/token" in arguments
    [volume] = [one for one in made["spec"]["volumes"] if one["name"] == "podferry-cache-token"]
    [source] = volume["projected"]["sources"]
    assert source["serviceAccountToken"]["audience"] == "podferry-cache"
    mounted = {one["name"] for one in sidecar(made)["volumeMounts"]}
    assert "podferry-cache-token" in mounted
    assert "podferry-cache-token" not in json.dumps(made["spec"]["containers"])
    [preference] = find(made, NEAR)
    term = preference["podAffinityTerm"]
    assert term["labelSelector"] == {"matchLabels": {"podferry.io/cache": "digits"}}
    assert (term["namespaces"], term["topologyKey"]) == (["podferry"], "kubernetes.io/hostname")


def test_other_datasets_are_taken_from_their_source(annotated_pod: Callable[..., Pod]) -> None:
    pod = annotated(annotated_pod, dataset="s3://datasets/other", dataset_size="1Gi")
    assert injected(pod, DIGITS) == injected(pod)


def test_a_cache_has_a_name(annotated_pod: Callable[..., Pod]) -> None:
    pod = annotated(annotated_pod, dataset="digits", dataset_size="1Gi")
    _, made = injected(pod, DIGITS)
    assert "--dataset-cache=http://10.0.0.7:8091" in sidecar(made)["args"]


def test_the_preferences_of_the_pod_are_kept(annotated_pod: Callable[..., Pod]) -> None:
    pod = annotated(annotated_pod, dataset="digits", dataset_size="1Gi")
    theirs = {"weight": 5, "podAffinityTerm": {"topologyKey": "zone"}}
    pod["spec"]["affinity"] = {"podAffinity": {NEAR[-1]: [theirs]}}
    _, made = injected(pod, DIGITS)
    assert find(made, NEAR)[0] == theirs
    assert len(find(made, NEAR)) == 2


def test_a_volume_of_the_tokens_name_is_refused(annotated_pod: Callable[..., Pod]) -> None:
    """With two of them, the API server would refuse the pod without saying whose they are."""
    pod = annotated(annotated_pod, dataset="digits", dataset_size="1Gi")
    pod["spec"]["volumes"] = [{"name": "podferry-cache-token", "emptyDir": {}}]
    decision = inject(pod, Namespace("team", caches=(DIGITS,)), POLICY)
    assert [one.measured for one in decision.problems] == ["podferry-cache-token"]


def test_a_second_pass_changes_nothing(annotated_pod: Callable[..., Pod]) -> None:
    pod = annotated(annotated_pod, dataset="digits", dataset_size="1Gi")
    _, made = injected(pod, DIGITS)
    assert inject(made, Namespace("team", caches=(DIGITS,)), POLICY).patch == ()


def test_the_namespaces_own_cache_comes_first() -> None:
    spec = read_annotations({f"{PREFIX}dataset": "s3://datasets/digits", f"{PREFIX}dataset.b": "s3://b/c"})
    assert caches_of(spec, (OWN, DIGITS)) == {"": OWN}


def test_a_frozen_reference_has_the_cache_of_its_uri() -> None:
    frozen = f"s3://datasets/digits#sha256={'a1' * 32}&bytes=5&files=1"
    spec = read_annotations({f"{PREFIX}dataset": frozen})
    assert caches_of(spec, (DIGITS,)) == {"": DIGITS}


def test_a_name_with_two_meanings_is_refused() -> None:
    assert declared_datasets({"digits": DIGITS.source}, (DIGITS,)) == {"digits": DIGITS.source}
    declared = declared_datasets({"digits": "s3://elsewhere/x"}, (DIGITS,))
    both = "s3://elsewhere/x of the policy, s3://datasets/digits of the cache in podferry"
    with pytest.raises(InvalidSpec, match=rf"the name means several datasets \({both}\)"):
        resolve_dataset("digits", declared)


def test_two_caches_of_one_name_are_both_named() -> None:
    declared = declared_datasets({}, (KnownCache("digits", "s3://b/other", OWN.url, "team"), DIGITS))
    both = "s3://b/other of the cache in team, s3://datasets/digits of the cache in podferry"
    with pytest.raises(InvalidSpec, match=rf"the name means several datasets \({both}\)"):
        resolve_dataset("digits", declared)


def test_a_name_with_two_meanings_stops_only_pods_that_use_it(annotated_pod: Callable[..., Pod]) -> None:
    """Who may create a Service must not stop the other pods of the namespace."""
    pod = annotated(annotated_pod, dataset="s3://datasets/other", dataset_size="1Gi")
    other = KnownCache("digits", "s3://b/other", OWN.url, "team")
    assert injected(pod, other, DIGITS) == injected(pod)
    outcome, _ = injected(annotated(annotated_pod, dataset="digits", dataset_size="1Gi"), other, DIGITS)
    assert outcome in {InjectionOutcome.DENIED, InjectionOutcome.REFUSED}


def test_a_cache_of_the_pods_namespace_is_a_service_that_the_policy_allows(
    annotated_pod: Callable[..., Pod],
) -> None:
    """Who may create Services there decides what it answers."""
    pod = annotated(annotated_pod, dataset="s3://datasets/digits", dataset_size="1Gi")
    for endpoints, url in (
        (("https://s3.lab",), DIGITS.url),
        (("https://s3.lab", "http://10.0.0.9:8091"), OWN.url),
        (("*",), OWN.url),
    ):
        policy = Policy(image=POLICY.image, allowed=AllowedLocations(endpoints=endpoints))
        outcome, made = injected(pod, OWN, DIGITS, policy=policy)
        assert outcome is InjectionOutcome.INJECTED
        assert f"--dataset-cache={url}" in sidecar(made)["args"]
