"""podferry's image and manifests in a cluster, as an administrator installs them."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from podferry.webhook.cluster.kube import USER_AGENT
from podferry.webhook.policy.policy import Policy
from podferry.webhook.policy.policy_yaml import read_policy
from tests.cluster.cluster import Cluster, documents
from tests.cluster.process import ClusterError, patient, wait_until
from tests.e2e.manifests import Object, container, pod, podferry_annotations
from tests.e2e.namespace import DRY_RUN

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OVERLAY = HERE / "overlay"
IMAGE = "localhost/podferry:e2e"
NAMESPACE = "podferry"
WEBHOOK = "deployment/podferry-webhook"
SELECTOR = "-lapp.kubernetes.io/name=podferry-webhook"
WEBHOOKS = (("mutatingwebhookconfiguration", "podferry"), ("validatingwebhookconfiguration", "podferry"))
REGISTRATIONS = (
    *WEBHOOKS,
    ("validatingadmissionpolicybinding", "podferry-injected"),
    ("validatingadmissionpolicy", "podferry-injected"),
)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
PROBE = podferry_annotations(checkpoints="s3://e2e/probe", checkpoint_size="1Mi")


def build(cluster: Cluster) -> None:
    """Build and load the images: podferry's own, and the base image, which trainers use."""
    cluster.load_base_image()
    cluster.build_image(IMAGE, ROOT / "Dockerfile.sidecar", ROOT)


@contextlib.contextmanager
def installed(cluster: Cluster, overlay: Path = OVERLAY) -> Iterator[None]:
    """podferry's manifests in the cluster for the duration of the block; they stay if they existed before."""
    before = cluster.find("-n", NAMESPACE, WEBHOOK)
    try:
        cluster.kubectl("apply", "-k", str(overlay))
        if before:  # the image's name is the same, its content may not be
            restart(cluster)
        else:
            await_webhook(cluster)
        yield
    finally:
        if not before:
            cluster.kubectl("delete", "-k", str(overlay), "--ignore-not-found", timeout=120)


def overlay_with(folder: Path, *components: str, **fields: list[Object]) -> Path:
    """Write what an administrator writes who combines components; the image and the policy are the tests'.

    `fields` replace those of the file, such as `patches=[]`.
    """
    (folder / "deploy").symlink_to(ROOT / "deploy")
    shutil.copy(OVERLAY / "policy.yaml", folder)
    document = yaml.safe_load((OVERLAY / "kustomization.yaml").read_text())
    document |= {
        "resources": ["deploy/base"],
        "components": [f"deploy/components/{one}" for one in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({**document, **fields}))
    return folder


def policy_of(cluster: Cluster) -> Policy:
    """The policy in the cluster."""
    return read_policy(cluster.get("configmap", "podferry-policy", "-n", NAMESPACE)["data"]["policy.yaml"])


def refresh_files(cluster: Cluster) -> None:
    """Have the kubelet update the replicas' files at once, as it does when a pod changes."""
    mark = f"podferry.test/changed={time.time_ns()}"
    cluster.kubectl("-n", NAMESPACE, "annotate", "pods", SELECTOR, "--overwrite", mark)


def await_webhook(cluster: Cluster) -> None:
    """Wait until all replicas of the webhook are ready, and the API server reaches them."""
    cluster.kubectl(
        "-n", NAMESPACE, "rollout", "status", WEBHOOK, f"--timeout={patient(120):.0f}s", timeout=130
    )
    wait_until("the webhook to be called", lambda: injects(cluster), 60, interval=0.5)


@contextlib.contextmanager
def uninstalled(cluster: Cluster) -> Iterator[None]:
    """The block installs podferry itself; afterwards the tests' own overlay is in force again."""
    cluster.kubectl("delete", "-k", str(OVERLAY), timeout=120)
    try:
        yield
    finally:
        cluster.kubectl("apply", "-k", str(OVERLAY))
        restart(cluster)


def restart(cluster: Cluster) -> None:
    """Load the current image and policy; no earlier replica responds any more."""
    earlier = cluster.kubectl("-n", NAMESPACE, "get", "pods", "-o", "name").split()
    cluster.kubectl("-n", NAMESPACE, "rollout", "restart", WEBHOOK)
    await_webhook(cluster)
    limit = f"--timeout={patient(60):.0f}s"
    cluster.kubectl("-n", NAMESPACE, "wait", "--for=delete", limit, *earlier, timeout=70)


@contextlib.contextmanager
def webhook_down(cluster: Cluster) -> Iterator[None]:
    """No replica of the webhook runs in the block."""
    try:
        with scaled_down(cluster):
            yield
    finally:
        await_webhook(cluster)


@contextlib.contextmanager
def scaled_down(cluster: Cluster) -> Iterator[None]:
    """The same, for a webhook that does not inject; it is not awaited afterwards."""
    replicas = cluster.get("-n", NAMESPACE, WEBHOOK)["spec"]["replicas"]
    cluster.kubectl("-n", NAMESPACE, "scale", WEBHOOK, "--replicas=0")
    try:
        limit = f"--timeout={patient(60):.0f}s"
        cluster.kubectl("-n", NAMESPACE, "wait", "--for=delete", "pod", SELECTOR, limit)
        yield
    finally:
        cluster.kubectl("-n", NAMESPACE, "scale", WEBHOOK, f"--replicas={replicas}")


@contextlib.contextmanager
def not_registered(
    cluster: Cluster, registrations: Sequence[tuple[str, str]] = REGISTRATIONS
) -> Iterator[None]:
    """Unregister the webhook for the block; the admission policy too, if `registrations` includes it."""
    kept = [cluster.get(*one) for one in registrations]
    forgotten = _forgotten if registrations == REGISTRATIONS else _not_called
    for one in registrations:
        cluster.kubectl("delete", *one)
    try:
        wait_until("the API server to forget the webhook", lambda: forgotten(cluster), 30, interval=0.2)
        yield
    finally:
        _register_again(cluster, kept)
        await_webhook(cluster)


def _register_again(cluster: Cluster, kept: Sequence[dict[str, Any]]) -> None:
    """Create what was deleted, with each field owned by its owner before: a manifest or the webhook."""
    applied = (one["metadata"]["annotations"][LAST_APPLIED] for one in kept)
    cluster.kubectl("apply", "-f", "-", stdin=documents(map(json.loads, applied)))
    for one in (one for one in kept if "webhooks" in one):
        patch = [{"op": "add", "path": "/webhooks", "value": one["webhooks"]}]
        words = ("--type=json", f"--field-manager={USER_AGENT}", "-p", json.dumps(patch))
        cluster.kubectl("patch", one["kind"], one["metadata"]["name"], *words)


def _forgotten(cluster: Cluster) -> bool:
    answer = _tried(cluster)
    return answer.startswith("{") and "initContainers" not in json.loads(answer)["spec"]


def _not_called(cluster: Cluster) -> bool:
    """Whether the admission policy, which is still in force, refuses the pod."""
    return "webhook was not called" in _tried(cluster)


def injects(cluster: Cluster) -> bool:
    """Whether a pod that opts in would be injected now; nothing is created."""
    answer = _tried(cluster)
    return answer.startswith("{") and "initContainers" in json.loads(answer)["spec"]


def _tried(cluster: Cluster) -> str:
    """The JSON of a pod that opts in, as admitted, or why it would be refused."""
    opted_in = pod("probe", container(command=["true"]), annotations=PROBE)
    try:
        return cluster.kubectl(*DRY_RUN, stdin=json.dumps(opted_in))
    except ClusterError as error:
        return str(error)
