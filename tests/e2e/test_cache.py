"""Pods take a dataset from a cache: ordinary pods in front of the object store, without privileges."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from typing import Any

import pytest

from tests.e2e.install import IMAGE, NAMESPACE, SELECTOR
from tests.e2e.manifests import PREFIX, UNPRIVILEGED, Object, container, job, pod
from tests.e2e.namespace import STORE_SECRET, Namespace
from tests.e2e.site import RESTRICTED, Site
from tests.e2e.store_proxy import store_proxy

SERVICE = "podferry-cache-digits"
FILES = {f"d{n % 3}/{n}.bin": hashlib.shake_256(bytes([n])).digest(200_000) for n in range(20)}
CHANGED = {**FILES, **dict(zip(FILES, (b"before", bytes(200_000)), strict=False))}
"""An earlier version: of one file shorter, of another one as long."""
DIGESTS = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
TRAIN = f"""
import hashlib, os, pathlib
data = pathlib.Path(os.environ["PODFERRY_DATASET"])
found = {{str(file.relative_to(data)): hashlib.sha256(file.read_bytes()).hexdigest()
          for file in data.rglob("*") if file.is_file()}}
assert found == {DIGESTS!r}, found
print("right")
"""
ASK = """
import urllib.error, urllib.request
for path in ("/healthz", "/v1/status", "/v1/files/x/y"):
    try:
        print(urllib.request.urlopen("http://{address}:8091" + path, timeout=20).status)
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
"""


def cache_verb(site: Site, namespace: Namespace, verb: str, *words: str) -> str:
    """What a verb of `podferry cache` prints about the cache."""
    options = ("-n", namespace.name, "--kubeconfig", str(site.cluster.kubeconfig))
    command = [sys.executable, "-m", "podferry", "cache", verb, "digits", *words, *options]
    with site.cluster.network():
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def reported(site: Site, namespace: Namespace) -> Any:
    """What `podferry cache status` prints, as soon as the holder is complete."""

    def complete() -> Any:
        found = json.loads(cache_verb(site, namespace, "status", "-o", "json"))
        return found if all((one["status"] or {}).get("complete") for one in found[0]["holders"]) else None

    return namespace.until("the holder to be complete", complete, 60)


@pytest.fixture(autouse=True)
def bindings(site: Site):
    """Removes what is outside of namespaces."""
    yield
    site.cluster.kubectl("delete", "clusterrolebindings", "-l", "podferry.io/cache=digits")
    site.cluster.kubectl("delete", "clusterrole", "podferry-cache", "--ignore-not-found")


@pytest.fixture
def restricted(site: Site):
    """A namespace that enforces restricted Pod Security."""
    with site.namespace(RESTRICTED) as namespace:
        yield namespace


def frozen_dataset(site: Site, namespace: Namespace) -> str:
    """A frozen reference to a dataset of this namespace's test."""
    uri = site.upload_dataset(f"cache-{namespace.name}", FILES)
    return site.bucket.podferry("dataset", "freeze", uri).strip()


def creation(namespace: Namespace, source: str, *more: str) -> tuple[str, ...]:
    """The words of `podferry cache create`."""
    options = ("-n", namespace.name, "--secret", STORE_SECRET, "--endpoint", namespace.bucket.endpoint)
    return "cache", "create", "digits", "--source", source, *options, "--image", IMAGE, *more


def applied(site: Site, namespace: Namespace, source: str, *more: str) -> dict[str, str]:
    """What `podferry cache create --apply` has done, by object."""
    words = (*creation(namespace, source, *more), "--apply", "--kubeconfig", str(site.cluster.kubeconfig))
    command = [sys.executable, "-m", "podferry", *words]
    with site.cluster.network():
        done = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(line.rsplit(" ", 1) for line in done.splitlines())


def create(namespace: Namespace, source: str, *more: str) -> str:
    """Apply a cache's manifests, and wait until its holder is ready; the address of its Service."""
    command = [sys.executable, "-m", "podferry", *creation(namespace, source, *more)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    namespace.cluster.kubectl("apply", "-f", "-", stdin=text)
    ready = "jsonpath={.status.readyReplicas}=1"
    namespace.cluster.wait(f"statefulset/{SERVICE}", ready, namespace=namespace.name, timeout=120)
    return str(namespace.get("service", SERVICE)["spec"]["clusterIP"])


def wait_for_webhook(namespace: Namespace, probe: Object, address: str) -> None:
    """Wait until pods get the cache; before, its name is unknown and the pod refused.

    Each replica of the webhook lists caches by itself: each one is asked, by way of the API server.
    """
    replicas = namespace.cluster.get("pods", "-n", NAMESPACE, SELECTOR)["items"]
    asked = {
        "uid": "probe",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": namespace.name,
        "operation": "CREATE",
        "object": probe,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}

    def knows(replica: Object) -> bool:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/https:{replica['metadata']['name']}:8443/proxy/mutate"
        said = namespace.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(review))
        patch = base64.b64decode(json.loads(said)["response"].get("patch", ""))
        return f"--dataset-cache=http://{address}:8091".encode() in patch

    namespace.until("the webhook to know the cache", lambda: all(map(knows, replicas)), 60)


def test_pods_start_from_the_cache_alone(site: Site, restricted: Namespace) -> None:
    namespace, source = restricted, frozen_dataset(site, restricted)
    address = create(namespace, source)
    user = {"securityContext": {**UNPRIVILEGED, "runAsUser": 1000}}
    with store_proxy(site.cluster, site.bucket, "GET *", "HEAD *") as silent:
        annotations = namespace.store_annotations(dataset="digits", dataset_size="32Mi")
        annotations[f"{PREFIX}endpoint"] = silent.endpoint
        wanted = job("train", container(script=TRAIN, **user), annotations=annotations)

        probe = pod("probe", container(script=TRAIN, **user), annotations=annotations)
        wait_for_webhook(namespace, probe, address)
        outcome = namespace.run(wanted, 120)
    assert outcome.succeeded, outcome
    [made] = namespace.pods(wanted)
    assert "podAffinity" in made["spec"]["affinity"]


def test_without_a_token_nothing_is_read(site: Site, namespace: Namespace) -> None:
    source = frozen_dataset(site, namespace)
    address = create(namespace, source)
    [report] = reported(site, namespace)
    assert (report["name"], report["source"]) == ("digits", source)
    [holder] = report["holders"]
    assert holder["status"]["complete"] == [source.partition("#")[0]]
    assert holder["status"]["datasets"][0]["bytes_done"] == sum(map(len, FILES.values()))
    outcome = namespace.run(pod("ask", container(script=ASK.format(address=address))), 60)
    lines = outcome["trainer"].log.splitlines()
    assert [line[:3] for line in lines] == ["200", "401", "401"]
    assert "audience podferry-cache" in lines[1]


def test_a_cache_that_is_gone_costs_nothing_but_speed(site: Site, namespace: Namespace) -> None:
    source = frozen_dataset(site, namespace)
    address = create(namespace, source)
    annotations = namespace.store_annotations(dataset=source, dataset_size="32Mi")
    probe = pod("probe", container(script=TRAIN), annotations=annotations)
    wait_for_webhook(namespace, probe, address)
    namespace.kubectl("scale", f"statefulset/{SERVICE}", "--replicas=0")
    namespace.cluster.wait(f"pod/{SERVICE}-0", "delete", namespace=namespace.name)
    outcome = namespace.run(job("train", container(script=TRAIN), annotations=annotations), 120)
    assert outcome.succeeded, outcome
    assert "the cache is not used" in outcome["podferry"].log


def test_a_cache_takes_what_has_changed_at_its_source(site: Site, namespace: Namespace) -> None:
    name = f"cache-{namespace.name}"
    address = create(namespace, site.upload_dataset(name, CHANGED), "--size", "32Mi")
    assert cache_verb(site, namespace, "warmup", "--timeout", "60").startswith("digits: 1 holder with")
    newer = site.bucket.podferry("dataset", "freeze", site.upload_dataset(name, FILES)).strip()
    assert cache_verb(site, namespace, "warmup", "--timeout", "60") == "digits: 1 holder with 3.8 MiB each\n"
    with store_proxy(site.cluster, site.bucket, "GET *", "HEAD *") as silent:
        annotations = namespace.store_annotations(dataset=newer)
        annotations[f"{PREFIX}endpoint"] = silent.endpoint
        wait_for_webhook(namespace, pod("probe", container(script=TRAIN), annotations=annotations), address)
        outcome = namespace.run(job("train", container(script=TRAIN), annotations=annotations), 120)
    assert outcome.succeeded, outcome
    log = namespace.kubectl("logs", f"{SERVICE}-0")
    assert "another version is served" in log
    assert "2 changed: " in log


def test_a_pod_reads_what_has_changed_since_its_cache_was_filled(site: Site, namespace: Namespace) -> None:
    name = f"cache-{namespace.name}"
    source = site.upload_dataset(name, CHANGED)
    address = create(namespace, source, "--size", "32Mi")
    assert cache_verb(site, namespace, "warmup", "--timeout", "60").startswith("digits: 1 holder with")
    site.upload_dataset(name, FILES)
    annotations = namespace.store_annotations(dataset=source, dataset_size="32Mi")
    wait_for_webhook(namespace, pod("probe", container(script=TRAIN), annotations=annotations), address)
    outcome = namespace.run(job("train", container(script=TRAIN), annotations=annotations), 120)
    assert outcome.succeeded, outcome


def test_a_cache_is_created_changed_and_warmed_up_again(site: Site, namespace: Namespace) -> None:
    source, workload = frozen_dataset(site, namespace), f"statefulset/{SERVICE}"
    whole = "digits: 1 holder with 3.8 MiB each\n"
    assert applied(site, namespace, source)[workload] == "created"
    assert cache_verb(site, namespace, "warmup", "--timeout", "60") == whole
    assert set(applied(site, namespace, source).values()) == {"unchanged"}
    first = namespace.get("pod", f"{SERVICE}-0")["metadata"]["uid"]
    changes = applied(site, namespace, source, "--max-rate", "50Mi")
    assert {name for name, outcome in changes.items() if outcome != "unchanged"} == {workload}
    assert cache_verb(site, namespace, "warmup", "--timeout", "60") == whole
    holder = namespace.get("pod", f"{SERVICE}-0")
    assert holder["metadata"]["uid"] != first
    assert "--max-rate=50Mi" in holder["spec"]["containers"][0]["args"]


def test_a_cache_is_cleared_warmed_up_and_deleted(site: Site, namespace: Namespace) -> None:
    create(namespace, frozen_dataset(site, namespace))
    whole = "digits: 1 holder with 3.8 MiB each\n"
    assert cache_verb(site, namespace, "warmup", "--timeout", "60") == whole
    assert "is replaced" in cache_verb(site, namespace, "clear")
    assert cache_verb(site, namespace, "warmup", "--timeout", "60") == whole
    assert "stops" in cache_verb(site, namespace, "clear", "--empty")
    assert "  Empty  " in cache_verb(site, namespace, "status")
    namespace.cluster.wait(f"pod/{SERVICE}-0", "delete", namespace=namespace.name)
    assert cache_verb(site, namespace, "warmup", "--timeout", "60") == whole
    removed = cache_verb(site, namespace, "delete").splitlines()
    assert [line.partition("/")[0] for line in removed] == [
        "service",
        "statefulset",
        "rolebinding",
        "role",
        "serviceaccount",
        "clusterrolebinding",
    ]
