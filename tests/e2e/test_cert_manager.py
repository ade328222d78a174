"""The overlay for cert-manager, installed and renewed by its own controllers, while pods are created."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.cluster.process import wait_until
from tests.e2e import install
from tests.e2e.cert_manager_site import cert_manager, certificate, renew
from tests.e2e.manifests import container, pod
from tests.e2e.review_stream import ReviewStream, review_stream
from tests.e2e.site import Site

SECRET = ("-n", install.NAMESPACE, "secret", "podferry-webhook-tls")
EXPIRY = re.compile(r"^podferry_webhook_certificate_expiry_timestamp_seconds (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def certified(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """podferry is installed with cert-manager's certificates, as on a cluster that has never seen it."""
    overlay = install.overlay_with(tmp_path_factory.mktemp("overlay"), "cert-manager")
    with cert_manager(site.cluster), install.uninstalled(site.cluster):
        site.cluster.kubectl("apply", "-k", str(overlay))
        try:
            install.await_webhook(site.cluster)
            yield site
        finally:
            site.cluster.kubectl("delete", "-k", str(overlay), timeout=120)


def bundles(site: Site) -> dict[str, str]:
    """The CA bundle of each webhook, by its name."""
    entries = [one for kind, name in install.WEBHOOKS for one in site.cluster.get(kind, name)["webhooks"]]
    return {one["name"]: one["clientConfig"].get("caBundle", "") for one in entries}


def trusted(site: Site) -> bool:
    """Whether every webhook has the CA of the certificate, those of the policy's rules as well."""
    found = bundles(site)
    of_rules = [name for name in found if name.endswith(".rules.podferry.io")]
    return len(of_rules) == 4 and set(found.values()) == {site.cluster.get(*SECRET)["data"]["ca.crt"]}


def test_every_webhook_trusts_the_certificate(certified: Site) -> None:
    wait_until("every webhook to have the CA", lambda: trusted(certified), 60, interval=0.5)
    # Without annotations, only the entry of a rule sends a pod, and a call that fails is ignored.
    with certified.namespace({"podferry.test/rules": "audited"}) as namespace:
        answer = namespace.start(pod("audited", container(command=["true"])))
    assert "podferry only audits this pod: it would be injected" in answer.errors


def test_no_review_fails_while_certificates_are_renewed(certified: Site) -> None:
    with certified.namespace() as namespace:
        manifest = pod("digits", container(command=["true"]), annotations=namespace.training_annotations())
        key, authority = data(certified, "tls.key"), data(certified, "ca.crt")
        with review_stream(namespace, manifest) as stream:
            wait_until("the stream to flow", lambda: stream.injected > 20, 30)
            renewed(certified, stream)
            renew(certified.cluster, "podferry-ca")
            renewed(certified, stream)
    assert stream.failures == []
    assert data(certified, "ca.crt") != authority
    assert data(certified, "tls.key") == key  # stamps are signed with it
    assert trusted(certified)


def data(site: Site, name: str) -> str:
    found: str = site.cluster.get(*SECRET)["data"][name]
    return found


def renewed(site: Site, stream: ReviewStream) -> None:
    """Renew the certificate and wait until each replica serves the new one, and reviews go on."""
    renew(site.cluster, "podferry-webhook")
    install.refresh_files(site.cluster)
    wait_until("the replicas to serve it", lambda: served(site), 90, interval=0.5)
    seen = stream.injected
    wait_until("more reviews", lambda: stream.injected > seen + 20, 30)


def served(site: Site) -> bool:
    status = certificate(site.cluster, "podferry-webhook")["status"]
    pods: list[Any] = site.cluster.get("-n", install.NAMESPACE, "pods", install.SELECTOR)["items"]
    wanted = datetime.fromisoformat(status["notAfter"]).timestamp()
    return {expiry(site, one["metadata"]["name"]) for one in pods} == {wanted}


def expiry(site: Site, name: str) -> float:
    """When the certificate of a replica expires, by its metrics."""
    text = site.cluster.kubectl("get", "--raw", f"/api/v1/namespaces/podferry/pods/{name}:8080/proxy/metrics")
    found = EXPIRY.search(text)
    assert found, text
    return float(found[1])
