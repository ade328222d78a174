"""Stand-ins for the controllers of TrainJobs and PaddleJobs, on a real API server.

They are the tests' own: neither Kubeflow Trainer, JobSet nor PaddlePaddle's operator runs. They make real
Jobs and pods, with the names, labels and owners that those make, and write the status that those write.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Callable, Iterator

from kubernetes import config

from podferry.components.cluster_job.api_server import ApiServer
from podferry.components.cluster_job.job_kind import PADDLE_JOB, TRAIN_JOB, JobKind, Phase
from podferry.contract.errors import AlreadyExists, FerryError
from tests.cluster.cluster import Cluster, documents
from tests.cluster.process import ClusterError, wait_until
from tests.e2e.custom_resources import defined, trainer_files
from tests.e2e.manifests import Object
from tests.e2e.namespace import Namespace

INTERVAL = 0.5
"""Seconds between two looks at the jobs."""
RUNTIME = "e2e-torch"
"""The ClusterTrainingRuntime of `training_runtime`."""
MASTER_PORT = 29400
"""Trainer's own, for torchrun."""
PHASES = ("pending", "running", "failed", "succeeded")
NOW = "2026-01-01T00:00:00Z"


def training_runtime(image: str, name: str = RUNTIME) -> Object:
    """A ClusterTrainingRuntime with one replicated Job, `node`, whose failed pods are not replaced."""
    container = {"name": "node", "image": image, "imagePullPolicy": "IfNotPresent"}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"backoffLimit": 0, "template": pod}
    ancestor = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    node = {"name": "node", "template": {"metadata": ancestor, "spec": job}}
    return {
        "apiVersion": TRAIN_JOB.api_version,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [node]}}},
    }


def paddle_job_definition() -> Object:
    """A stand-in for the operator's definition: the fields of its `api/v1/paddlejob_types.go` used here."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    number, text = {"type": "integer"}, {"type": "string"}
    role = {
        "type": "object",
        "required": ["replicas"],
        "properties": {"replicas": number, "template": anything},
    }
    spec = {
        "cleanPodPolicy": text,
        "intranet": text,
        "withGloo": number,
        "ps": role,
        "worker": role,
        "heter": role,
    }
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": spec}, "status": anything},
    }
    version = {
        "name": PADDLE_JOB.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"kind": PADDLE_JOB.kind, "plural": PADDLE_JOB.plural, "singular": "paddlejob"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PADDLE_JOB.plural}.{PADDLE_JOB.group}"},
        "spec": {"group": PADDLE_JOB.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


@contextlib.contextmanager
def trainer_of(cluster: Cluster, version: str, *runtimes: Object) -> Iterator[None]:
    """Kubeflow Trainer's definitions of a version, and runtimes, for the block."""
    with defined(cluster, trainer_files(version)):
        wait_until("the schema to be published", lambda: published(cluster, TRAIN_JOB), 60, interval=0.5)
        cluster.kubectl("create", "-f", "-", stdin=documents(runtimes))
        yield


def published(cluster: Cluster, kind: JobKind) -> bool:
    """Whether the API server's OpenAPI has a kind: it follows a definition after a moment."""
    with contextlib.suppress(ClusterError):
        found = cluster.kubectl("get", "--raw", f"/openapi/v3/apis/{kind.api_version}")
        return f'"kind":"{kind.kind}"' in found.replace(" ", "")
    return False


@contextlib.contextmanager
def controlled(namespace: Namespace, kind: JobKind) -> Iterator[None]:
    """The stand-in for a kind's controller works in this namespace during the block."""
    stopped = threading.Event()
    reconcile = {TRAIN_JOB.kind: _train_job, PADDLE_JOB.kind: _paddle_job}[kind.kind]
    thread = threading.Thread(target=_work, args=(namespace, kind, reconcile, stopped))
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


Reconcile = Callable[[ApiServer, Object], None]


def _work(namespace: Namespace, kind: JobKind, reconcile: Reconcile, stopped: threading.Event) -> None:
    with namespace.cluster.network():
        connections = config.new_client_from_config(str(namespace.cluster.kubeconfig))
        api = ApiServer(connections, namespace.name)
        while not stopped.wait(INTERVAL):
            with contextlib.suppress(FerryError):  # as a controller: what fails is tried again
                for job in api.get(kind.path(namespace.name))["items"]:
                    ended = kind.state(job).phase in {Phase.SUCCEEDED, Phase.FAILED}
                    if not ended and "deletionTimestamp" not in job["metadata"]:
                        reconcile(api, job | {"apiVersion": kind.api_version, "kind": kind.kind})


def _owner(job: Object) -> Object:
    own = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return own | {key: job["metadata"][key] for key in ("name", "uid")}


def _create(api: ApiServer, path: str, one: Object) -> None:
    with contextlib.suppress(AlreadyExists):
        api.create(path, one)


def _status(api: ApiServer, kind: JobKind, job: Object, status: Object) -> None:
    api.merge(f"{kind.path(api.namespace, job['metadata']['name'])}/status", {"status": status})


def _train_job(api: ApiServer, job: Object) -> None:
    """One Indexed Job for the replicated Job of the runtime, and the TrainJob's status from it."""
    name = job["metadata"]["name"]
    path = f"/apis/batch/v1/namespaces/{api.namespace}/jobs"
    _create(api, path, _job_of(api, job))
    counts = api.get(f"{path}/{name}-node-0").get("status", {})
    ended = {one["type"]: one for one in counts.get("conditions", []) if one["status"] == "True"}
    numbers = {key: counts.get(key, 0) for key in ("ready", "succeeded", "failed", "active")} | {
        "suspended": 0
    }
    status: Object = {"jobsStatus": [{"name": "node", **numbers}]}
    for theirs, ours, reason in (
        ("Complete", "Complete", "AllJobsCompleted"),
        ("Failed", "Failed", "FailedJobs"),
    ):
        if theirs in ended:
            message = f"jobset {theirs.lower()} (said by the tests' stand-in)"
            status["conditions"] = [
                {
                    "type": ours,
                    "status": "True",
                    "reason": reason,
                    "message": message,
                    "lastTransitionTime": NOW,
                }
            ]
    _status(api, TRAIN_JOB, job, status)


def _job_of(api: ApiServer, job: Object) -> Object:
    name, spec = job["metadata"]["name"], job["spec"]
    runtime = api.get(f"/apis/{TRAIN_JOB.api_version}/clustertrainingruntimes/{spec['runtimeRef']['name']}")
    (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    batch = copy.deepcopy(node["template"]["spec"])
    trainer, template = spec.get("trainer", {}), batch["template"]
    container = template["spec"]["containers"][0]
    container |= {key: trainer[key] for key in ("image", "command", "args", "env") if key in trainer}
    nodes = trainer.get("numNodes", 1)
    container["env"] = [*container.get("env", []), *_torch_variables(api, job, nodes)]
    labels = {
        **node["template"]["metadata"]["labels"],
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/replicatedjob-replicas": "1",
        "jobset.sigs.k8s.io/job-index": "0",
    }
    template["metadata"] = {"labels": labels, "annotations": _annotations(spec)}
    batch |= {"completions": nodes, "parallelism": nodes, "completionMode": "Indexed"}
    metadata = {"name": f"{name}-node-0", "labels": labels, "ownerReferences": [_owner(job)]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": batch}


def _torch_variables(api: ApiServer, job: Object, nodes: int) -> list[Object]:
    """What Trainer sets for torchrun. This cluster has no DNS: the address is that of a Service."""
    index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    return [
        {"name": "PET_NNODES", "value": str(nodes)},
        {"name": "PET_NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": index}}},
        {"name": "PET_MASTER_ADDR", "value": _address_of_the_first(api, job)},
        {"name": "PET_MASTER_PORT", "value": str(MASTER_PORT)},
    ]


def _address_of_the_first(api: ApiServer, job: Object) -> str:
    """The cluster's address of the job's pod with index 0."""
    path, name = f"/api/v1/namespaces/{api.namespace}/services", job["metadata"]["name"]
    selector = {"jobset.sigs.k8s.io/jobset-name": name, "batch.kubernetes.io/job-completion-index": "0"}
    ports = [{"port": MASTER_PORT, "targetPort": MASTER_PORT}]
    spec = {"selector": selector, "ports": ports, "publishNotReadyAddresses": True}
    _create(api, path, {"metadata": {"name": name, "ownerReferences": [_owner(job)]}, "spec": spec})
    address: str = api.get(f"{path}/{name}")["spec"]["clusterIP"]
    return address


def _annotations(spec: Object) -> Object:
    """What the TrainJob sets on its pods, in the field of either version."""
    found: Object = {}
    for one in spec.get("podTemplateOverrides", []):
        found |= one["metadata"]["annotations"]
    for one in spec.get("runtimePatches", []):
        for patched in one["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]:
            found |= patched["template"]["spec"]["template"]["metadata"]["annotations"]
    return found


def _paddle_job(api: ApiServer, job: Object) -> None:
    """The pods of each role, and the PaddleJob's phase from theirs."""
    name, spec = job["metadata"]["name"], job["spec"]
    path, status, wanted = f"/api/v1/namespaces/{api.namespace}/pods", {}, 0
    for role in ("ps", "worker"):
        replicas = spec.get(role, {}).get("replicas", 0)
        wanted += replicas
        for index in range(replicas):
            _create(api, path, _pod_of(job, role, index))
        found = api.get(path, labelSelector=f"paddle-res-type={role}")["items"]
        mine = [one for one in found if one["metadata"]["name"].startswith(f"{name}-{role}-")]
        phases = [one["status"]["phase"].lower() for one in mine]
        status[role] = {phase: phases.count(phase) for phase in PHASES}
    total = {phase: sum(one.get(phase, 0) for one in status.values()) for phase in ("failed", "succeeded")}
    phase = "Failed" if total["failed"] else "Completed" if total["succeeded"] == wanted else "Running"
    _status(api, PADDLE_JOB, job, {"phase": phase, **status})


def _pod_of(job: Object, role: str, index: int) -> Object:
    name = f"{job['metadata']['name']}-{role}-{index}"
    template = copy.deepcopy(job["spec"][role]["template"])
    metadata = template.get("metadata", {})
    labels = {**metadata.get("labels", {}), "paddle-res-name": name, "paddle-res-type": role}
    metadata |= {"name": name, "labels": labels, "ownerReferences": [_owner(job)]}
    own = [{"name": "PADDLE_TRAINER_ID", "value": str(index)}, {"name": "TRAINING_ROLE", "value": role}]
    container = template["spec"]["containers"][0]
    container["env"] = [*container.get("env", []), *own]
    spec = {"restartPolicy": "Never", **template["spec"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
