"""Values for random pods: valid, invalid and hostile ones, as people, operators and attackers write them."""

# ruff: noqa: S108 - directories of pods

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

REFERENCE = f"s3://datasets/digits#sha256={'a1' * 32}&bytes=104857600&files=1797"
ANNOTATIONS: dict[str, Sequence[str]] = {
    "inject": ("true", "false", "maybe", ""),
    "dataset": (
        REFERENCE,
        "s3://datasets/unsized",
        "digits",
        "gs//typo",
        "file:///etc",
        "$(inputs.uri)",
        "s3://a/../b",
    ),
    "dataset.extra-1": (REFERENCE, "s3://datasets/more"),
    "dataset-path": ("/data", "/dev/shm/dataset", "/dev/shm", "/", "relative", "/etc", "/a/../b"),
    "dataset-size": ("10Gi", "0", "-1", "1e3", "70Gi", "lots"),
    "medium": ("memory", "disk", "auto", "tape"),
    "checkpoints": ("s3://checkpoints/team", "s3://c/$(namespace)/$(job)", "http://c/x", "s3://c/$(rank)"),
    "checkpoint-size": ("10Mi", "3Gi", "9999Ti", "1.5Gi", ""),
    "keep-local": ("0", "3", "-1", "many"),
    "restore": ("auto", "never", "latest", "s3://old/weights", "epoch 3"),
    "outputs": ("s3://outputs/team/$(rank)", "s3://outputs/team"),
    "output-size": ("10Mi", "1Gi"),
    "secret": ("store", "Not A Name", ""),
    "endpoint": ("http://store:9000", "store:9000", "https://user:password@store"),
    "world": ("1", "4", "0", "four"),
    "lineage": ("nightly", "$(job)", "a/b/../c"),
    "container": ("trainer", "main", "absent"),
    "shm-size": ("64Mi", "8Gi"),
    "grace": ("30s", "1h", "0"),
    "file-mode": ("0644", "999"),
    "exclude": ("*.tmp", "*.a, *.b"),
    "status": ("audited", "injected", "refused"),
    "spec": ("{}", '{"datasets":[]}', "not JSON"),
}
"""Values by annotation, without its prefix; the first one is valid."""
HOSTILE = (
    "\x00",
    "\x1b[2J",
    "$(HOME)",
    "$$",
    "'; rm -rf /; '",
    "\u202e",
    "a" * 3000,
    "{{.Name}}",
    "%s%n",
    "\n\n",
)
OWNERS = ("Job", "ReplicaSet", "StatefulSet", "PyTorchJob", "MPIJob", "RayCluster", "Workflow", "JobSet")
LABELS = (
    {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "1"},
    {"batch.kubernetes.io/job-completion-index": "2"},
    {"jobset.sigs.k8s.io/job-index": "0"},
    {"ray.io/node-type": "head"},
    {"pipeline/runid": "6f1c"},
    {"training.kubeflow.org/replica-index": "many"},
)
RESOURCES: tuple[Any, ...] = (
    None,
    {},
    {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
    {"limits": {"memory": "64Mi"}},
    {"requests": {"memory": "100M", "cpu": "100m"}},
    {"limits": {"nvidia.com/gpu": "1", "ephemeral-storage": "1Gi"}},
    {"limits": {"memory": "1234567890123m"}},
)
SECURITY: tuple[Any, ...] = (
    None,
    {"runAsUser": 1000},
    {"runAsNonRoot": True},
    {"runAsUser": 0, "fsGroup": 0},
    {"runAsUser": 1000, "runAsGroup": 100, "fsGroup": 2000, "seccompProfile": {"type": "RuntimeDefault"}},
)
ENVIRONMENTS: tuple[Any, ...] = (
    None,
    [],
    [{"name": "EPOCHS", "value": "$(PODFERRY_AGENT)"}],
    [{"name": "PODFERRY_DATASET", "value": "/mine"}],
    [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    [{"name": "AWS_ROLE_ARN", "value": "arn:aws:iam::1:role/train"}],
)
MOUNT_PATHS = ("/dev/shm", "/data", "/dev/shm/dataset/inner", "/", "/podferry", "/dev", "/scratch/")
CONTAINER_NAMES = ("helper", "istio-proxy", "podferry", "podferry-gate", "main", "linkerd-proxy")
POD_SETTINGS: tuple[tuple[str, Any], ...] = (
    ("terminationGracePeriodSeconds", 0),
    ("terminationGracePeriodSeconds", 86400),
    ("terminationGracePeriodSeconds", None),
    ("restartPolicy", "Never"),
    ("restartPolicy", "OnFailure"),
    ("hostNetwork", True),
    ("hostPID", True),
    ("shareProcessNamespace", True),
    ("os", {"name": "linux"}),
    ("os", {"name": "windows"}),
    ("nodeSelector", {"kubernetes.io/os": "windows"}),
    ("resources", {"limits": {"cpu": "4", "memory": "8Gi"}}),
    ("automountServiceAccountToken", False),
    ("priorityClassName", ""),
    ("initContainers", None),
    ("volumes", None),
)
JUNK: tuple[Any, ...] = (None, True, -1, 1.5, "", "\x00", [], {}, [[]], [None], {"": None}, {"a": {"b": []}})
"""What no place of a pod expects."""


def _workload(api_version: str, kind: str, spec: Any) -> tuple[dict[str, str], Any]:
    return {"apiVersion": api_version, "kind": kind}, spec


TEMPLATE = "TEMPLATE"
OF_TEMPLATE = {"replicas": 2, "template": TEMPLATE}
REPLICAS = {"Master": {**OF_TEMPLATE, "replicas": 1}, "Worker": OF_TEMPLATE}
RAY = {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [OF_TEMPLATE]}
WORKLOADS = (
    _workload("batch/v1", "Job", {"completionMode": "Indexed", "completions": 3, "template": TEMPLATE}),
    _workload(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {"replicatedJobs": [{"name": "node", "replicas": 2, "template": {"spec": {"template": TEMPLATE}}}]},
    ),
    _workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": REPLICAS}),
    _workload("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": REPLICAS}),
    _workload(
        "ray.io/v1",
        "RayJob",
        {"rayClusterSpec": RAY},
    ),
    _workload("batch.paddlepaddle.org/v1", "PaddleJob", {"worker": {"replicas": 2, "template": TEMPLATE}}),
)
"""Kind and spec of workloads, with TEMPLATE in the places of pod templates."""
