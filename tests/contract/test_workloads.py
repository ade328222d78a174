"""Workloads in the shapes of their operators: which templates they have, and the first pod of each."""

from __future__ import annotations

from typing import Any

import pytest

from podferry.contract.lineage import lineage_of
from podferry.contract.pod_owner import pod_owner_of
from podferry.contract.pod_templates import pod_templates_of
from podferry.contract.workloads import WORKLOADS

POD = {"metadata": {"labels": {"team": "a"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
TEMPLATE = {"template": POD}
JOB = {"template": {"spec": {"parallelism": 2, "completions": 2, **TEMPLATE}}}
REPLICATED = {"replicatedJobs": [{"name": "node", **JOB}, {"name": "workers", "replicas": 3, **JOB}]}
RAY = {
    "headGroupSpec": {"rayStartParams": {}, **TEMPLATE},
    "workerGroupSpecs": [{"groupName": "gpus", "replicas": 1, "maxReplicas": 4, **TEMPLATE}],
}


def kubeflow(kind: str, field: str, **roles: int) -> dict[str, Any]:
    replicas = {role: {"replicas": count, **TEMPLATE} for role, count in roles.items()}
    return workload("kubeflow.org/v1", kind, {field: replicas})


def workload(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "digits"}, "spec": spec}


PYTORCH, TF = "pytorchReplicaSpecs", "tfReplicaSpecs"
CASES = [
    (workload("batch/v1", "Job", TEMPLATE), [("spec.template", "job.digits", None, 1)]),
    (
        workload("batch/v1", "Job", {"completionMode": "Indexed", "completions": 4, **TEMPLATE}),
        [("spec.template", "job.digits", 0, 4)],
    ),
    (
        workload("jobset.x-k8s.io/v1alpha2", "JobSet", REPLICATED),
        [
            ("spec.replicatedJobs[node].template.spec.template", "jobset.digits", 0, 2),
            ("spec.replicatedJobs[workers].template.spec.template", "jobset.digits", None, 6),
        ],
    ),
    (
        kubeflow("PyTorchJob", PYTORCH, Master=1, Worker=3),
        [
            (f"spec.{PYTORCH}.Master.template", "pytorchjob.digits", 0, 1),
            (f"spec.{PYTORCH}.Worker.template", "pytorchjob.digits", 1, 3),
        ],
    ),
    (
        kubeflow("PyTorchJob", PYTORCH, Worker=2),
        [(f"spec.{PYTORCH}.Worker.template", "pytorchjob.digits", 0, 2)],
    ),
    (
        kubeflow("TFJob", TF, Chief=1, PS=2, Worker=2),
        [
            (f"spec.{TF}.Chief.template", "tfjob.digits", 0, 1),
            (f"spec.{TF}.PS.template", "tfjob.digits", None, 2),
            (f"spec.{TF}.Worker.template", "tfjob.digits", 1, 2),
        ],
    ),
    (
        kubeflow("XGBoostJob", "xgbReplicaSpecs", Master=1, Worker=1),
        [
            ("spec.xgbReplicaSpecs.Master.template", "xgboostjob.digits", 0, 1),
            ("spec.xgbReplicaSpecs.Worker.template", "xgboostjob.digits", 1, 1),
        ],
    ),
    (
        kubeflow("PaddleJob", "paddleReplicaSpecs", Worker=2),
        [("spec.paddleReplicaSpecs.Worker.template", "paddlejob.digits", 0, 2)],
    ),
    (
        kubeflow("JAXJob", "jaxReplicaSpecs", Worker=2),
        [("spec.jaxReplicaSpecs.Worker.template", "jaxjob.digits", 0, 2)],
    ),
    (
        kubeflow("MPIJob", "mpiReplicaSpecs", Launcher=1, Worker=2),
        [
            ("spec.mpiReplicaSpecs.Launcher.template", "mpijob.digits", None, 1),
            ("spec.mpiReplicaSpecs.Worker.template", "mpijob.digits", 0, 2),
        ],
    ),
    (
        workload(
            "kubeflow.org/v2beta1",
            "MPIJob",
            {"runLauncherAsWorker": True, "mpiReplicaSpecs": {"Launcher": TEMPLATE, "Worker": TEMPLATE}},
        ),
        [
            ("spec.mpiReplicaSpecs.Launcher.template", "mpijob.digits", 0, 1),
            ("spec.mpiReplicaSpecs.Worker.template", "mpijob.digits", 1, 1),
        ],
    ),
    (
        workload("batch.paddlepaddle.org/v1", "PaddleJob", {"worker": {"replicas": 2, **TEMPLATE}}),
        [("spec.worker.template", "paddlejob.digits", 0, 2)],
    ),
    (
        workload("ray.io/v1", "RayJob", {"rayClusterSpec": RAY}),
        [
            ("spec.rayClusterSpec.headGroupSpec.template", "rayjob.digits", None, 1),
            ("spec.rayClusterSpec.workerGroupSpecs[gpus].template", "rayjob.digits", None, 4),
        ],
    ),
    (
        workload("ray.io/v1", "RayCluster", RAY),
        [
            ("spec.headGroupSpec.template", "raycluster.digits", None, 1),
            ("spec.workerGroupSpecs[gpus].template", "raycluster.digits", None, 4),
        ],
    ),
    (
        workload(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"leaderWorkerTemplate": {"size": 4, "leaderTemplate": POD, "workerTemplate": POD}},
        ),
        [
            ("spec.leaderWorkerTemplate.leaderTemplate", "leaderworkerset.digits-0", 0, 1),
            ("spec.leaderWorkerTemplate.workerTemplate", "leaderworkerset.digits-0", 1, 3),
        ],
    ),
    (
        workload(
            "batch.volcano.sh/v1alpha1",
            "Job",
            {"plugins": {"pytorch": []}, "tasks": [{"name": "worker", "replicas": 3, **TEMPLATE}]},
        ),
        [("spec.tasks[worker].template", "volcanojob.digits", 1, 3)],
    ),
    (
        workload("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", {"template": {"spec": {}}}),
        [],
    ),
    (
        workload("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", {"template": {"spec": REPLICATED}}),
        [
            ("spec.template.spec.replicatedJobs[node].template.spec.template", "jobset.digits", 0, 2),
            ("spec.template.spec.replicatedJobs[workers].template.spec.template", "jobset.digits", None, 6),
        ],
    ),
    (workload("apps/v1", "Deployment", TEMPLATE), []),
    (workload("example.com/v1", "PyTorchJob", {PYTORCH: {"Worker": TEMPLATE}}), []),
]


@pytest.mark.parametrize(("manifest", "expected"), CASES, ids=lambda one: str(one)[:60])
def test_first_pods(manifest: dict[str, Any], expected: list[tuple[str, str, int | None, int]]) -> None:
    found = []
    for template in pod_templates_of(manifest):
        owner = pod_owner_of(template.pod, "team")
        lineage = lineage_of(owner).removeprefix("team.")
        found.append((template.path, lineage, owner.rank, template.pods))
        assert template.pod["metadata"]["labels"]["team"] == "a"
        assert template.pod["spec"]["containers"][0]["image"] == "i"
        assert template.complete == ("Runtime" not in manifest["kind"])
    assert found == expected


def test_every_kind_has_a_case() -> None:
    kinds = {(one["apiVersion"].partition("/")[0], one["kind"]) for one, _ in CASES}
    assert set(WORKLOADS) - {("trainer.kubeflow.org", "TrainJob")} <= kinds
