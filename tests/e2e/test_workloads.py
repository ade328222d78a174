"""Pods of one training run without `world`, and templates of workloads when they are applied."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from podferry.webhook.pod.pod_json import SIDECAR
from tests.cluster.cluster import documents
from tests.e2e.manifests import TRAINER, Object, container, job, podferry_annotations
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import PodOutcome
from tests.e2e.site import Site
from tests.e2e.trainers import COMMON

RANK_OF = "batch.kubernetes.io/job-completion-index"
WRITES = f"""{COMMON}
found = {{path.name: path.stat().st_size for path in checkpoints.iterdir()}}
say(found=found)
if not found:
    write(1, 1000 + int(os.environ["JOB_COMPLETION_INDEX"]))
"""
WRONG: Object = {"metadata": {"annotations": podferry_annotations(datset="s3://e2e/digits")}}
PLAIN: Object = {"metadata": {"annotations": {"example.com/podferry.io": "no key of podferry's"}}}
STAND_INS: dict[tuple[str, str], Any] = {
    ("kubeflow.org/v1", "PyTorchJob"): lambda pod: {"pytorchReplicaSpecs": {"Worker": {"template": pod}}},
    ("kubeflow.org/v2beta1", "MPIJob"): lambda pod: {"mpiReplicaSpecs": {"Worker": {"template": pod}}},
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): lambda pod: {"replicatedJobs": [replicated(pod)]},
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): lambda pod: {
        "template": {"spec": {"replicatedJobs": [replicated(pod)]}}
    },
    ("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime"): lambda pod: {
        "template": {"spec": {"replicatedJobs": [replicated(pod)]}}
    },
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): lambda pod: {"podTemplateOverrides": [{}, pod]},
    ("ray.io/v1", "RayJob"): lambda pod: {"rayClusterSpec": {"workerGroupSpecs": [{"template": pod}]}},
    ("ray.io/v1", "RayCluster"): lambda pod: {"headGroupSpec": {"template": pod}},
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): lambda pod: {
        "leaderWorkerTemplate": {"workerTemplate": pod}
    },
    ("batch.volcano.sh/v1alpha1", "Job"): lambda pod: {"tasks": [{"template": pod}]},
    ("batch.paddlepaddle.org/v1", "PaddleJob"): lambda pod: {"worker": {"template": pod}},
}
"""The spec of each kind around a pod template: where the operators' own definitions have it."""


def replicated(pod: Object) -> Object:
    return {"name": "node", "template": {"spec": {"template": pod}}}


def definition(version: str, kind: str) -> Object:
    """A stand-in for an operator's own definition: any fields, and no controller."""
    group, _, name = version.partition("/")
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    scope = "Cluster" if kind.startswith("Cluster") else "Namespaced"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [served]},
    }


@pytest.fixture
def stand_ins(site: Site) -> Iterator[None]:
    """Definitions of all kinds in `STAND_INS`, unless the operators' own ones are there."""
    made = [definition(version, kind) for version, kind in STAND_INS]
    names = [f"crd/{one['metadata']['name']}" for one in made]
    site.cluster.kubectl("create", "-f", "-", stdin=documents(made))
    try:
        site.cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
        yield
    finally:
        site.cluster.kubectl("delete", "--ignore-not-found", *names)


def test_without_world_only_rank_0_uploads_and_the_other_is_named(namespace: Namespace) -> None:
    """Both write a checkpoint; rank 0's is durable, rank 1 explains, and both resume from rank 0's."""
    indexed = {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}
    annotations = namespace.training_annotations()
    manifest = job("pair", container(script=WRITES), annotations=annotations, job_spec=indexed)
    first = namespace.run(manifest)
    assert first.succeeded, first
    (commit,) = namespace.bucket.commits(namespace.lineage("pair"))
    assert (commit.rank, [(file.name, file.size) for file in commit.files]) == (0, [("step-1.bin", 1000)])
    by_rank = {one.object["metadata"]["annotations"][RANK_OF]: one[SIDECAR] for one in first.pods}
    assert "not durable" not in by_rank["0"].message
    assert "not durable at the end: step-1" in by_rank["1"].message
    assert "set podferry.io/world to their number" in by_rank["1"].message
    assert "another agent took over" not in by_rank["0"].log + by_rank["1"].log
    namespace.delete(manifest)
    second = namespace.run(manifest)
    assert [restored(one) for one in second.pods] == [{"step-1.bin": 1000}] * 2, second
    assert namespace.bucket.commits(namespace.lineage("pair")) == [commit]


def restored(pod: PodOutcome) -> dict[str, int]:
    found: dict[str, int] = json.loads(pod[TRAINER].log.splitlines()[0])["found"]
    return found


def test_templates_of_every_kind_are_validated_when_applied(stand_ins: None, namespace: Namespace) -> None:
    """Those without a key of podferry's are admitted; others are refused, and the template is named."""
    for (version, kind), spec_around in STAND_INS.items():
        one = {"apiVersion": version, "kind": kind, "metadata": {"name": "digits"}}
        admitted = namespace.create({**one, "spec": spec_around(PLAIN)})
        assert admitted.code == 0, admitted
        refused = namespace.create({**one, "metadata": {"name": "wrong"}, "spec": spec_around(WRONG)})
        assert (refused.code, kind) == (1, kind), refused
        assert "spec." in refused.errors
        assert "podferry.io/datset: unknown annotation" in refused.errors
