"""The dashboard and the alerts on what a real Prometheus scrapes from the webhook and from Kubernetes."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator

import pytest

from tests.cluster.process import ClusterError, wait_until
from tests.e2e.manifests import Object, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.prometheus import MONITORING, Prometheus, prometheus
from tests.e2e.site import Site

ABSENT = ("fails.test.podferry.io", "ignored.test.podferry.io")
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())


@pytest.fixture(scope="module")
def measured(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with prometheus(site.cluster, tmp_path_factory.mktemp("prometheus")) as found:
        yield found


@pytest.fixture
def namespace(site: Site) -> Iterator[Namespace]:
    """A namespace whose pods are sent to `ABSENT`, too."""
    with site.namespace() as made, absent_webhooks(made):
        yield made


@contextlib.contextmanager
def absent_webhooks(namespace: Namespace) -> Iterator[None]:
    """Pods of the namespace are sent to two webhooks of our domain that no Service has."""
    entries = [absent(name, namespace.name) for name in ABSENT]
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace.name},
        "webhooks": entries,
    }
    namespace.cluster.apply(configuration)
    try:
        yield
    finally:
        namespace.cluster.kubectl("delete", "validatingwebhookconfiguration", namespace.name)


def absent(name: str, namespace: str) -> Object:
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": namespace, "name": "absent"}},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Ignore" if name.startswith("ignored") else "Fail",
        "sideEffects": "None",
    }


def expressions() -> dict[str, str]:
    """The dashboard's queries, by panel and number."""
    return {
        f"{panel['title']} {one['refId']}": one["expr"].replace("$__rate_interval", "30s")
        for panel in DASHBOARD["panels"]
        for one in panel["targets"]
    }


def test_each_panel_of_the_dashboard_has_values(measured: Prometheus, namespace: Namespace) -> None:
    manifest = pod("digits", container(command=["true"]), annotations=namespace.training_annotations())
    assert len(measured.targets) == 2
    without: list[str] = []

    def complete() -> bool:
        namespace.try_create(manifest)
        for replica in measured.replicas:
            assert measured.post(f"{replica}/mutate", "{}") == 400
        without[:] = [name for name, text in expressions().items() if not has_values(measured, text)]
        return not without

    with contextlib.suppress(ClusterError):
        wait_until("each panel to have values", complete, 45, interval=1)
    assert without == []


def test_calls_that_fail_are_seen(measured: Prometheus, namespace: Namespace) -> None:
    """Refused or let through: the API server counts them apart."""
    panel = [text for name, text in expressions().items() if name.startswith("API servers that cannot call")]

    def names() -> set[str]:
        namespace.try_create(pod("any", container()))
        return {one["metric"]["name"] for text in panel for one in measured.query(text)}

    wait_until("both calls", lambda: names() >= set(ABSENT), 60, interval=1)
    wait_until("the alert", lambda: "PodferryWebhookCalledInVain" in measured.firing(), 30, interval=0.5)
    assert measured.firing() == {"PodferryWebhookCalledInVain"}


def has_values(measured: Prometheus, expression: str) -> bool:
    return any(math.isfinite(float(one["value"][1])) for one in measured.query(expression))
