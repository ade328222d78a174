"""Replicas of the webhook are replaced, added and removed under a stream of reviews: none fails."""

from __future__ import annotations

import json

from tests.cluster.process import patient, wait_until
from tests.e2e import install
from tests.e2e.figures import Figures
from tests.e2e.manifests import Object, container, pod
from tests.e2e.namespace import DRY_RUN, Namespace
from tests.e2e.review_stream import review_stream
from tests.e2e.site import Site
from tests.e2e.webhook_secret import leaf, replace_leaf


def kubectl(site: Site, *words: str, stdin: str | None = None) -> str:
    return site.cluster.kubectl("-n", install.NAMESPACE, *words, stdin=stdin, timeout=patient(90))


def test_no_review_fails_while_replicas_and_certificates_change(
    site: Site, namespace: Namespace, figures: Figures
) -> None:
    manifest = pod("digits", container(command=["true"]), annotations=namespace.training_annotations())
    before = leaf(site.cluster)
    with review_stream(namespace, manifest) as stream:
        stream.await_flow()
        replace_leaf(site.cluster)
        before_policy = policy_hash(site, manifest)
        change_policy(site)
        seen = stream.injected
        kubectl(site, "rollout", "restart", install.WEBHOOK)
        kubectl(site, "rollout", "status", install.WEBHOOK, f"--timeout={patient(80):.0f}s")
        assert policy_hash(site, manifest) != before_policy
        scale(site, 1)
        assert stream.injected > seen
        scale(site, 2)
        install.await_webhook(site.cluster)
        site.cluster.kubectl("apply", "-k", str(install.OVERLAY))
    assert stream.failures == []
    assert leaf(site.cluster) != before
    figures.record("reviews while replicas are replaced", stream.figures())


def change_policy(site: Site) -> None:
    """Change a default; replicas that start from now on have it, others within seconds."""
    found = json.loads(kubectl(site, "get", "configmap/podferry-policy", "-o", "json"))["data"]["policy.yaml"]
    assert "grace: 30s" in found
    patch = {"data": {"policy.yaml": found.replace("grace: 30s", "grace: 31s")}}
    kubectl(site, "patch", "configmap/podferry-policy", "--type=merge", "-p", json.dumps(patch))


def policy_hash(site: Site, manifest: Object) -> str:
    """Of the policy that a pod would be injected by now."""
    made = json.loads(site.cluster.kubectl(*DRY_RUN, stdin=json.dumps(manifest)))
    found: str = made["metadata"]["annotations"]["podferry.io/policy-hash"]
    return found


def scale(site: Site, replicas: int) -> None:
    """Scale, and wait until the removed replicas are gone."""
    kubectl(site, "scale", install.WEBHOOK, f"--replicas={replicas}")
    wait_until(
        f"{replicas} replicas",
        lambda: len(kubectl(site, "get", "pods", install.SELECTOR, "-o", "name").split()) == replicas,
        60,
        interval=0.5,
    )
