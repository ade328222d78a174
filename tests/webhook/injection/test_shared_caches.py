from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podferry.contract.spec import PREFIX
from podferry.contract.spec_json import decode_spec
from podferry.webhook.injection.inject import InjectionOutcome, inject
from podferry.webhook.injection.shared_caches import WITH_HOLDER
from podferry.webhook.pod.json_patch import apply, find
from podferry.webhook.pod.known_cache import KnownCache
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import AllowedLocations, Policy

Pod = dict[str, Any]
URL = "http://10.0.0.7:8091"
DIGITS = KnownCache("digits", "s3://datasets/digits", URL, "podferry", "podferry-cache-digits")
COPIED = msgspec.structs.replace(DIGITS, claim="")
POLICY = Policy(image="registry.example.com/podferry:1")
FROZEN = "s3://datasets/digits#sha256={}&bytes=10&files=1"


def injected(make: Callable[..., Pod], cache: KnownCache, policy: Policy = POLICY, **settings: str) -> Pod:
    pod = make()
    named = {f"{PREFIX}{name.replace('_', '-')}": text for name, text in settings.items()}
    pod["metadata"]["annotations"] = named
    decision = inject(pod, Namespace("team", caches=(cache,)), policy)
    assert decision.outcome is InjectionOutcome.INJECTED, decision.problems
    return apply(pod, decision.patch)


def sidecar(pod: Pod) -> Pod:
    return next(one for one in pod["spec"]["initContainers"] if one["name"] == "podferry")


def test_a_pod_with_the_bound_claim_mounts_the_dataset(annotated_pod: Callable[..., Pod]) -> None:
    made = injected(annotated_pod, DIGITS, dataset="digits", dataset_path="/data")
    volumes = {one["name"]: one for one in made["spec"]["volumes"]}
    assert volumes["podferry-claim"]["persistentVolumeClaim"] == {
        "claimName": "podferry-cache-digits",
        "readOnly": True,
    }
    assert not {"podferry-data", "podferry-cache-token"} & set(volumes)
    [trainer] = [one for one in made["spec"]["containers"] if one.get("env")]
    mounts = {one["mountPath"]: one for one in trainer["volumeMounts"]}
    wanted = {"name": "podferry-claim", "mountPath": "/data", "readOnly": True, "subPath": "files"}
    assert mounts["/data"] == wanted
    assert {"name": "PODFERRY_DATASET", "value": "/data"} in trainer["env"]
    agent = sidecar(made)
    assert "--shared-dir=/podferry/shared" in agent["args"]
    assert not any(word.startswith("--dataset") for word in agent["args"])
    mount = {"name": "podferry-claim", "mountPath": "/podferry/shared", "readOnly": True}
    assert mount in agent["volumeMounts"]
    [term] = find(made, WITH_HOLDER)
    assert term["labelSelector"] == {"matchLabels": {"podferry.io/cache": "digits"}}
    assert term["namespaces"] == ["podferry"]
    text = next(one["value"] for one in agent["env"] if one["name"] == "PODFERRY_SPEC")
    [shared] = decode_spec(text.encode()).shared
    assert (str(shared.origin.uri), shared.path) == ("s3://datasets/digits", "/data")


def test_sharing_needs_no_memory_for_the_dataset(annotated_pod: Callable[..., Pod]) -> None:
    def limit(cache: KnownCache, size: str) -> Any:
        made = injected(annotated_pod, cache, dataset="digits", dataset_size=size)
        return sidecar(made)["resources"]["limits"]["memory"]

    assert limit(DIGITS, "1Gi") == limit(DIGITS, "9Gi")
    assert limit(COPIED, "1Gi") != limit(COPIED, "9Gi")


def test_several_datasets_one_of_which_is_shared(annotated_pod: Callable[..., Pod]) -> None:
    more = {"dataset.val": "s3://datasets/val", "dataset-size.val": "1Gi", "dataset.big": "digits"}
    made = injected(annotated_pod, DIGITS, **more)
    arguments = sidecar(made)["args"]
    assert "--shared-dir=big=/podferry/shared-datasets/big" in arguments
    assert "--dataset-dir=val=/podferry/datasets/val" in arguments


@pytest.mark.parametrize(
    "settings",
    [
        {"include": "*.jpg"},
        {"exclude": "*.jpg"},
        {"shard": "0/2"},
        {"unpack": "always"},
        {"file_mode": "0600"},
        {"dataset": FROZEN.format("0" * 64)},
    ],
)
def test_what_is_not_the_holders_stage_is_copied(annotated_pod: Callable[..., Pod], settings: Any) -> None:
    made = injected(annotated_pod, DIGITS, **{"dataset": "digits", "dataset_size": "1Gi", **settings})
    assert f"--dataset-cache={URL}" in sidecar(made)["args"]
    assert find(made, WITH_HOLDER) is None


def test_of_two_caches_one_shares(annotated_pod: Callable[..., Pod]) -> None:
    """Two terms of affinity need one holder that is in both caches: no pod would be scheduled."""
    pod = annotated_pod()
    settings = {"dataset.train": "digits", "dataset.val": "others", "dataset-size.val": "1Gi"}
    pod["metadata"]["annotations"] = {f"{PREFIX}{name}": text for name, text in settings.items()}
    other = KnownCache("others", "s3://datasets/others", URL, "podferry", "podferry-cache-others")
    decision = inject(pod, Namespace("team", caches=(DIGITS, other)), POLICY)
    assert decision.outcome is InjectionOutcome.INJECTED, decision.problems
    made = apply(pod, decision.patch)
    assert len(find(made, WITH_HOLDER)) == 1
    args = sidecar(made)["args"]
    assert "--dataset-dir=val=/podferry/datasets/val" in args
    assert [word for word in args if word.startswith("--shared-dir=train=")]
    assert not [word for word in args if word.startswith("--shared-dir=val=")]


def test_a_frozen_reference_to_what_the_cache_has_frozen_is_shared(annotated_pod: Callable[..., Pod]) -> None:
    frozen = FROZEN.format("1" * 64)
    cache = msgspec.structs.replace(DIGITS, source=frozen)
    assert find(injected(annotated_pod, cache, dataset=frozen), WITH_HOLDER)


def test_the_policy_allows_the_source_of_the_dataset(annotated_pod: Callable[..., Pod]) -> None:
    policy = msgspec.structs.replace(POLICY, allowed=AllowedLocations(sources=("s3://datasets/*",)))
    assert injected(annotated_pod, DIGITS, policy, dataset="digits")
    other = msgspec.structs.replace(POLICY, allowed=AllowedLocations(sources=("pvc://*",)))
    with pytest.raises(AssertionError, match="s3://datasets/digits"):
        injected(annotated_pod, DIGITS, other, dataset="digits")
