"""Pods as KServe, Katib, KFP and Paddle Operator make them take one dataset from one holder, by its name.

None of these runs here. The shapes of KServe's and Katib's pods are written down from their sources, KFP's
are recorded, `job_controllers` stands in for Paddle Operator; images and programs are the tests' own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from podferry.components.cluster_job.job_kind import PADDLE_JOB
from tests.e2e.job_controllers import controlled
from tests.e2e.job_inputs import role
from tests.e2e.kfp_pods import FURNITURE, recorded, runnable
from tests.e2e.manifests import Object, container, job, pod, podferry_annotations
from tests.e2e.namespace import STORE_SECRET, Namespace
from tests.e2e.site import Site
from tests.e2e.store_proxy import StoreProxy, store_proxy
from tests.e2e.test_cache import DIGESTS, FILES, TRAIN, bindings, create, reported, wait_for_webhook

__all__ = ["bindings"]
TOTAL = sum(map(len, FILES.values()))
MODELS = "/mnt/models"
"""Where KServe's servers look for a model. Source: kserve, `DefaultModelLocalMountPath`."""
METRICS = "/var/log/katib"
SERVE = f"""
import hashlib, http.server, pathlib
files = [file for file in pathlib.Path("{MODELS}").rglob("*") if file.is_file()]
found = {{str(file.relative_to("{MODELS}")): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}}
assert found == {DIGESTS!r}, found
http.server.HTTPServer(("", 8080), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
COLLECT = f"""
import pathlib, time
while not any(file.read_text() == "completed\\n" for file in pathlib.Path("{METRICS}").glob("*.pid")):
    time.sleep(0.2)
print(pathlib.Path("{METRICS}/metrics.log").read_text())
"""


@pytest.fixture
def counted(site: Site) -> Iterator[StoreProxy]:
    with store_proxy(site.cluster, site.bucket) as proxy:
        yield proxy


def predictor(annotations: Object) -> Object:
    """A Deployment as KServe makes it for an InferenceService without `storageUri`."""
    labels = {
        "app": "isvc.digits-predictor",
        "component": "predictor",
        "serving.kserve.io/inferenceservice": "digits",
    }
    server = container("kserve-container", SERVE)
    server["args"] = ["--model_name=digits", f"--model_dir={MODELS}", "--http_port=8080"]
    server["readinessProbe"] = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    body = pod("digits", server, restartPolicy="Always")["spec"]
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": body}
    spec = {"selector": {"matchLabels": {"app": labels["app"]}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "digits-predictor"},
        "spec": spec,
    }


def trial(name: str, annotations: Object) -> Object:
    """A trial's Job, whose pod has a metrics collector of files: it waits for the main process alone."""
    labels = {"katib.kubeflow.org/trial": name, "katib.kubeflow.org/experiment": "sweep"}
    script = f'python3 -c "$0" 1>{METRICS}/metrics.log 2>&1 && echo completed > {METRICS}/$$$$.pid'
    mounts = [{"name": "metrics-volume", "mountPath": METRICS}]
    main = container("training-container", command=["sh", "-c", script, TRAIN], volumeMounts=mounts)
    collector = container("metrics-logger-and-collector", COLLECT, volumeMounts=mounts)
    collector["args"] = ["-t", name, "-m", "accuracy", "-path", f"{METRICS}/metrics.log", "-w", "false"]
    return job(
        name,
        main,
        collector,
        annotations=annotations | podferry_annotations(container="training-container"),
        labels=labels,
        shareProcessNamespace=True,
        volumes=[{"name": "metrics-volume", "emptyDir": {}}],
    )


def iteration(name: str, annotations: Object) -> Object:
    """A step of a ParallelFor."""
    one = runnable(recorded("executor-parallelfor"), TRAIN, annotations)
    one["metadata"]["name"] = name
    return one


def paddle_job(annotations: Object) -> Object:
    """A parameter server and a worker, each with the dataset's name in its template."""
    roles = {"ps": role(1, TRAIN), "worker": role(1, TRAIN)}
    for one in roles.values():
        one["template"]["metadata"] = {"annotations": annotations}
    kind = {"apiVersion": PADDLE_JOB.api_version, "kind": PADDLE_JOB.kind}
    return {**kind, "metadata": {"name": "wide"}, "spec": roles}


def test_readers_of_all_shapes_cost_the_source_one_dataset(
    site: Site, namespace: Namespace, counted: StoreProxy, paddle: None
) -> None:
    source = site.upload_dataset(f"readers-{namespace.name}", FILES)
    address = create(namespace, source, "--size", "32Mi", "--endpoint", counted.endpoint)
    named = podferry_annotations(
        dataset="digits", dataset_size="32Mi", endpoint=counted.endpoint, secret=STORE_SECRET
    )
    wait_for_webhook(namespace, pod("probe", container(script=TRAIN), annotations=named), address)
    reported(site, namespace)
    mounted = named | podferry_annotations(dataset_path="/mnt/imagenet")
    trials = [trial(f"sweep-{letter}", named) for letter in "ab"]
    steps = [iteration(f"iteration-{number}", named) for number in (0, 1)]
    namespace.start(*FURNITURE, predictor(named | podferry_annotations(dataset_path=MODELS)), *trials, *steps)
    with controlled(namespace, PADDLE_JOB):
        namespace.start(paddle_job(mounted))
        namespace.cluster.wait(
            "deployment/digits-predictor",
            "jsonpath={.status.readyReplicas}=1",
            namespace=namespace.name,
            timeout=120,
        )
        for one in (*trials, *steps):
            outcome = namespace.outcome(one, 120)
            assert outcome.succeeded, outcome
        ended = "jsonpath={.status.phase}=Completed"
        namespace.cluster.wait("paddlejob/wide", ended, namespace=namespace.name, timeout=120)
    [report] = reported(site, namespace)
    readers = 7
    assert report["holders"][0]["status"]["served_bytes"] == readers * TOTAL
    lists = (readers + 1) * len(FILES) * 1024  # less than 1 KiB of XML and heads for a file
    assert TOTAL <= counted.sent().total() < TOTAL + lists
