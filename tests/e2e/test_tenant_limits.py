"""LimitRanges and ResourceQuotas: what podferry predicts of a pod is what the API server decides."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from podferry.webhook.injection.inject import inject
from podferry.webhook.limits.namespace_limits import NamespaceLimits, limits_from
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace as PodNamespace
from tests.e2e import install
from tests.e2e.manifests import Object, container, job, pod
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site

TRAIN = """
import os, pathlib
folder = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
(folder / "step-1.tmp").write_bytes(b"weights")
(folder / "step-1.tmp").rename(folder / "step-1.bin")
"""
SMALL = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
GUARANTEED = {"limits": {"cpu": "200m", "memory": "256Mi"}}
LARGE = {"requests": {"cpu": "3", "memory": "64Mi"}, "limits": {"cpu": "4", "memory": "1Gi"}}
TRAINERS: dict[str, Any] = {"small": SMALL, "guaranteed": GUARANTEED, "large": LARGE, "unset": {}}


def limit_range(**item: Any) -> Object:
    spec = {"limits": [{"type": "Container", **item}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "team"}, "spec": spec}


def quota(**hard: str) -> Object:
    spec = {"hard": {name.replace("_", "."): text for name, text in hard.items()}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "compute"}, "spec": spec}


CASES: dict[str, tuple[Object, ...]] = {
    "defaults": (limit_range(default={"cpu": "500m"}, defaultRequest={"cpu": "50m"}),),
    "minimum": (limit_range(min={"cpu": "50m"}),),
    "maximum": (limit_range(max={"cpu": "2", "memory": "512Mi"}),),
    "ratio": (limit_range(maxLimitRequestRatio={"cpu": "4"}),),
    "pod": (limit_range() | {"spec": {"limits": [{"type": "Pod", "max": {"memory": "700Mi"}}]}},),
    "limits.cpu": (quota(limits_cpu="3"),),
    "limits.cpu with defaults": (quota(limits_cpu="3"), limit_range(default={"cpu": "500m"})),
    "requests.memory": (quota(requests_memory="600Mi", pods="5"),),
}


def stored(namespace: Namespace, objects: tuple[Object, ...]) -> NamespaceLimits:
    """The limits as people get them from the cluster, when their use is known."""
    namespace.start(*objects)

    def counted() -> str | None:
        text = namespace.kubectl("get", "limitrange,resourcequota", "-o", "yaml")
        quotas = [one for one in yaml.safe_load(text)["items"] if one["kind"] == "ResourceQuota"]
        return text if all((one.get("status") or {}).get("used") for one in quotas) else None

    return limits_from([yaml.safe_load(namespace.until("the use of the quotas", counted, 30))])


@pytest.mark.parametrize("case", CASES)
def test_predictions_are_what_the_api_server_decides(site: Site, namespace: Namespace, case: str) -> None:
    limits, policy = stored(namespace, CASES[case]), install.policy_of(site.cluster)
    predicted, decided = {}, {}
    for name, resources in TRAINERS.items():
        one = container(command=["true"], resources=resources)
        made = pod(name, one, annotations=namespace.training_annotations())
        complete = limits.with_defaults(made)
        patched = apply(complete, inject(complete, PodNamespace(namespace.name), policy).patch)
        problems = limits.problems(limits.with_defaults(patched))
        predicted[name] = "rejected" if problems else "accepted"
        answer = namespace.try_create(made)
        decided[name] = "rejected" if answer.code else "accepted"
        assert answer.code == 0 or "forbidden" in answer.errors, answer.errors
    assert predicted == decided


def test_a_guaranteed_pod_trains_within_a_quota(namespace: Namespace) -> None:
    """It keeps its class, and the quota on CPU limits admits its containers."""
    namespace.start(quota(limits_cpu="2", limits_memory="4Gi"))
    resources = {"limits": {"cpu": "200m", "memory": "256Mi"}}
    wanted = namespace.training_annotations()
    outcome = namespace.run(job("digits", container(script=TRAIN, resources=resources), annotations=wanted))
    assert outcome.phase == "Succeeded"
    assert outcome.pod.object["status"]["qosClass"] == "Guaranteed"
    assert len(namespace.bucket.commits(namespace.lineage("digits"))) == 1
