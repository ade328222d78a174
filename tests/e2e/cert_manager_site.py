"""cert-manager in a cluster: its own controllers and cainjector, from `cert_manager/main.go`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from tests.cluster import build
from tests.cluster.cluster import Cluster
from tests.cluster.layout import Layout
from tests.cluster.process import wait_until
from tests.e2e.custom_resources import CERT_MANAGER, cert_manager_files, defined

CERTIFICATES = "customresourcedefinition/certificates.cert-manager.io"


@contextlib.contextmanager
def cert_manager(cluster: Cluster) -> Iterator[None]:
    """cert-manager runs in the block; one that the cluster has is used."""
    if cluster.find(CERTIFICATES):
        yield
        return
    program = build.program(Layout.of().cache, CERT_MANAGER, "3 to 10")
    environment = {"KUBECONFIG": str(cluster.kubeconfig)}
    with (
        defined(cluster, cert_manager_files()),
        cluster.run_in_network([str(program)], environment=environment),
    ):
        yield


def certificate(cluster: Cluster, name: str) -> Any:
    """A Certificate of podferry's namespace."""
    return cluster.get("-n", "podferry", "certificate.cert-manager.io", name)


def renew(cluster: Cluster, name: str) -> None:
    """What `cmctl renew` does: have a Certificate issued again, and wait until it is."""
    before = certificate(cluster, name)["status"]
    issuing = {"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "by a test"}
    conditions = [*(one for one in before["conditions"] if one["type"] != "Issuing"), issuing]
    patch = json.dumps({"status": {"conditions": conditions}})
    words = ["patch", "certificate.cert-manager.io", name, "--subresource=status", "--type=merge"]
    cluster.kubectl("-n", "podferry", *words, "-p", patch)

    def issued() -> bool:
        return bool(certificate(cluster, name)["status"].get("revision", 0) > before["revision"])

    wait_until(f"{name} to be issued again", issued, 60, interval=0.5)
