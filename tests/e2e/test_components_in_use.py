"""Components of deploy/ in use: high availability and audit only."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.existing import ExistingCluster
from tests.cluster.process import ClusterError, patient, wait_until
from tests.e2e import install
from tests.e2e.manifests import container, pod
from tests.e2e.review_stream import review_stream
from tests.e2e.site import Site


def kubectl(site: Site, *words: str) -> str:
    return site.cluster.kubectl("-n", install.NAMESPACE, *words, timeout=patient(90))


@contextlib.contextmanager
def applied(site: Site, overlay: Path) -> Iterator[None]:
    """The overlay is in force in the block, the tests' own afterwards."""
    site.cluster.kubectl("apply", "-k", str(overlay))
    try:
        yield
    finally:
        site.cluster.kubectl("apply", "-k", str(install.OVERLAY))
        install.restart(site.cluster)


@pytest.fixture(scope="module")
def available(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Three replicas, as the component high-availability has them."""
    if isinstance(site.cluster.backend, ExistingCluster):
        pytest.skip("the nodes of this cluster are not ours to drain")
    with applied(site, install.overlay_with(tmp_path_factory.mktemp("overlay"), "high-availability")):
        install.await_webhook(site.cluster)
        yield site


def test_a_drain_keeps_two_replicas(available: Site) -> None:
    """The only node: the third replica goes, its replacement has no place, and the others must stay."""
    (node,) = (one["metadata"]["name"] for one in available.cluster.get("nodes")["items"])
    with available.namespace() as namespace:
        manifest = pod("digits", container(command=["true"]), annotations=namespace.training_annotations())
        with review_stream(namespace, manifest) as stream:
            stream.await_flow()
            words = [
                "drain",
                node,
                f"--pod-selector={install.SELECTOR.removeprefix('-l')}",
                "--delete-emptydir-data",
                "--timeout=10s",
            ]
            try:
                with pytest.raises(ClusterError, match="violate the pod's disruption budget"):
                    kubectl(available, *words)
                assert ready(available) == 2
            finally:
                kubectl(available, "uncordon", node)
            wait_until("the third replica", lambda: ready(available) == 3, 60, interval=0.5)
    assert stream.failures == []


def ready(site: Site) -> int:
    found: int = site.cluster.get("-n", install.NAMESPACE, install.WEBHOOK)["status"].get("readyReplicas", 0)
    return found


def test_replicas_are_on_different_nodes(available: Site) -> None:
    """The real scheduler places pods with the constraints of the replicas, on nodes that run nothing."""
    deployment = available.cluster.get("-n", install.NAMESPACE, install.WEBHOOK)
    labels = deployment["spec"]["selector"]["matchLabels"]
    constraints = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
    spread = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "spread"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "topologySpreadConstraints": constraints,
                    "containers": [container(command=["true"])],
                },
            },
        },
    }
    with available.namespace() as namespace, empty_nodes(available, "empty-1", "empty-2"):
        namespace.start(spread)

        def places() -> list[str]:
            pods = namespace.get("pods")["items"]
            return sorted(one["spec"].get("nodeName", "") for one in pods)

        wait_until("the pods to have nodes", lambda: len(places()) == 3 and all(places()), 60, interval=0.5)
        assert places()[:2] == ["empty-1", "empty-2"]
        namespace.kubectl("delete", "deployment/spread", "--cascade=foreground", "--wait=false")
        namespace.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")


@contextlib.contextmanager
def empty_nodes(site: Site, *names: str) -> Iterator[None]:
    """Nodes without a kubelet: one may be silent for 50 s before its node is not ready."""
    size = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"capacity": size, "allocatable": size, "conditions": [{"type": "Ready", "status": "True"}]}
    try:
        for name in names:
            labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": name}
            site.cluster.apply(
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
            )
            site.cluster.kubectl(
                "patch", "node", name, "--subresource=status", "-p", json.dumps({"status": status})
            )
        wait_until("the nodes to take pods", lambda: not any(tainted(site, name) for name in names), 30)
        yield
    finally:
        site.cluster.kubectl("delete", "node", *names)


def tainted(site: Site, name: str) -> bool:
    return bool(site.cluster.get("node", name)["spec"].get("taints"))


def test_only_audited(site: Site, tmp_path: Path) -> None:
    """No pod is changed, and none is refused, not even without the webhook."""
    overlay = install.overlay_with(tmp_path, "audit-only", patches=[])
    with applied(site, overlay), site.namespace() as namespace:
        install.refresh_files(site.cluster)
        annotations = namespace.training_annotations()

        def status() -> str:
            made = namespace.dry_run(asked)
            assert len(made["spec"]["containers"]) == 1
            found: str = made["metadata"]["annotations"].get("podferry.io/status", "")
            return found

        asked = pod("digits", container(command=["true"]), annotations=annotations)
        wait_until(
            "every replica to audit", lambda: {status() for _ in range(8)} == {"audited"}, 120, interval=0.5
        )
        wrong = pod(
            "wrong", container(command=["true"]), annotations=annotations | {"podferry.io/datset": "x"}
        )
        assert "it would be" in namespace.start(wrong).errors
        assert "initContainers" not in namespace.get("pod", "wrong")["spec"]
        with install.scaled_down(site.cluster):
            answer = namespace.start(pod("digits", container(command=["true"]), annotations=annotations))
            assert "webhook was not called" in answer.errors
        assert namespace.outcome(pod("digits", container(command=["true"]))).phase == "Succeeded"
