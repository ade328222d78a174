"""Overlays and components of deploy/ on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from podferry.webhook.policy.policy import Enforcement
from podferry.webhook.policy.policy_yaml import read_policy
from tests.cluster.process import patient
from tests.e2e import install
from tests.e2e.custom_resources import cert_manager_files, defined, prometheus_operator_files
from tests.e2e.manifests import Object
from tests.e2e.site import Site

DEPLOY = install.ROOT / "deploy"
OVERLAYS = sorted(path.parent.name for path in DEPLOY.glob("overlays/*/kustomization.yaml"))
COMPONENTS = sorted(path.parent.name for path in DEPLOY.glob("components/*/kustomization.yaml"))


@pytest.fixture(scope="module")
def with_definitions(site: Site) -> Iterator[Site]:
    """cert-manager's and the Prometheus operator's resources are known."""
    with defined(site.cluster, [*cert_manager_files(), *prometheus_operator_files()]):
        yield site


def kubectl(site: Site, *words: str) -> str:
    return site.cluster.kubectl("-n", install.NAMESPACE, *words, timeout=patient(90))


def rendered(site: Site, folder: Path) -> dict[tuple[str, str], Object]:
    found = yaml.safe_load_all(site.cluster.kubectl("kustomize", str(folder)))
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def accepted(site: Site, folder: Path) -> None:
    """No warning, and nothing left out, for each object."""
    answer = site.cluster.kubectl("apply", "-k", str(folder), "--dry-run=server", "--validate=strict")
    lines = answer.splitlines()
    assert len(lines) == len(rendered(site, folder))
    assert [line for line in lines if not line.endswith("(server dry run)")] == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_api_server_accepts_the_overlays(with_definitions: Site, overlay: str) -> None:
    folder = DEPLOY / "overlays" / overlay
    accepted(with_definitions, folder)
    found = rendered(with_definitions, folder)
    policy = read_policy(found["ConfigMap", "podferry-policy"]["data"]["policy.yaml"])
    audited = overlay == "audit-only"
    assert (policy.enforcement is Enforcement.AUDIT) is audited
    (mutating,) = found["MutatingWebhookConfiguration", "podferry"]["webhooks"]
    assert mutating["failurePolicy"] == ("Ignore" if audited else "Fail")


def test_an_api_server_accepts_all_components_at_once(with_definitions: Site, tmp_path: Path) -> None:
    folder = install.overlay_with(tmp_path, *COMPONENTS)
    accepted(with_definitions, folder)
    found = rendered(with_definitions, folder)
    specs = [found[key]["spec"]["template"]["spec"] for key in found if key[0] in {"Deployment", "DaemonSet"}]
    assert {one["containers"][0]["image"] for one in specs} == {install.IMAGE}
    assert found["ServiceAccount", "podferry-webhook"]["imagePullSecrets"] == [{"name": "registry"}]
    deployment = found["Deployment", "podferry-webhook"]["spec"]
    assert deployment["replicas"] == 3
    assert "--key=/etc/podferry-tls/tls.key" in deployment["template"]["spec"]["containers"][0]["args"]
    resources = [one for rule in found["Role", "podferry-webhook"]["rules"] for one in rule["resources"]]
    assert set(resources) == {"configmaps"}


def test_the_image_is_pulled_in_advance(site: Site, tmp_path: Path) -> None:
    overlay = install.overlay_with(tmp_path, "pre-pull", resources=[], patches=[])
    site.cluster.kubectl("apply", "-k", str(overlay))
    try:
        kubectl(site, "rollout", "status", "daemonset/podferry-pre-pull", f"--timeout={patient(60):.0f}s")
    finally:
        site.cluster.kubectl("delete", "-k", str(overlay))
