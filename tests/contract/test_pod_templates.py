from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.pod_templates import pod_templates_of

POD = {"metadata": {"labels": {"team": "a"}}, "spec": {"containers": [{"name": "main", "env": []}]}}
JOBS = [{"name": "node", "template": {"spec": {"template": POD}}}]
GROUPS = [{"groupName": "gpus", "replicas": 2, "template": POD}, {"template": POD}]


def workload(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "digits"}, "spec": spec}


WORKLOADS = [
    workload("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": JOBS}),
    workload("ray.io/v1", "RayCluster", {"workerGroupSpecs": GROUPS}),
    workload("kubeflow.org/v1", "TFJob", {"tfReplicaSpecs": {"Chief": {"template": POD}}}),
    workload("batch.volcano.sh/v1", "Job", {"plugins": {"pytorch": []}, "tasks": [{"template": POD}]}),
    workload(
        "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": {"workerTemplate": POD}}
    ),
]


def test_members_of_lists_are_called_by_their_names() -> None:
    paths = [[one.path for one in pod_templates_of(manifest)] for manifest in WORKLOADS[:2]]
    assert paths[0] == ["spec.replicatedJobs[node].template.spec.template"]
    assert paths[1] == ["spec.workerGroupSpecs[gpus].template", "spec.workerGroupSpecs[1].template"]


def test_variables_follow_those_of_the_template() -> None:
    """Of several of a name Kubernetes uses the last."""
    own = {"name": "RANK", "value": "7"}
    pod = {"spec": {"containers": [{"name": "pytorch", "env": [own]}]}}
    replicas = {"Master": {"template": pod}, "Worker": {"template": pod}}
    _, worker = pod_templates_of(workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas}))
    assert worker.pod["spec"]["containers"][0]["env"] == [own, {"name": "RANK", "value": "1"}]


def test_a_trainjob_has_only_parts_of_templates() -> None:
    metadata = {"metadata": {"annotations": {"a": "b"}}}
    jobs = [{"name": "node", "template": {"spec": {"template": metadata}}}]
    patch = {"manager": "me", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    spec = {"runtimePatches": [patch], "podTemplateOverrides": [{"targetJobs": [{"name": "n"}], **metadata}]}
    found = pod_templates_of(workload("trainer.kubeflow.org/v1alpha1", "TrainJob", spec))
    assert [one.pod["metadata"]["annotations"] for one in found] == [{"a": "b"}] * 2
    assert [one.complete for one in found] == [False, False]
    assert found[1].path == "spec.podTemplateOverrides[0]"


def test_a_template_is_not_changed() -> None:
    before = str(WORKLOADS)
    for manifest in WORKLOADS:
        pod_templates_of(manifest)
    assert str(WORKLOADS) == before


def test_an_owner_above_the_workload_stays() -> None:
    made = workload("batch/v1", "Job", {"template": POD})
    made["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "set", "controller": True}]
    (template,) = pod_templates_of(made)
    assert template.pod["metadata"]["ownerReferences"][0]["name"] == "set"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(WORKLOADS), st.data())
def test_members_of_any_type_are_read(manifest: Any, data: st.DataObject) -> None:
    """Fields of custom resources without a schema may be anything: one of them is replaced."""
    assert isinstance(pod_templates_of(_with_one_replaced(manifest, data)), list)


def _with_one_replaced(node: Any, data: st.DataObject) -> Any:
    if isinstance(node, dict) and node and data.draw(st.integers(0, 5)):
        key = data.draw(st.sampled_from(sorted(node)))
        return {**node, key: _with_one_replaced(node[key], data)}
    if isinstance(node, list) and node and data.draw(st.integers(0, 5)):
        return [_with_one_replaced(node[0], data), *node[1:]]
    return data.draw(st.dictionaries(st.text(max_size=3), JSON) | JSON)
