"""Replicas of the webhook are replaced, added and removed under a stream of reviews: none fails."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime

from podferry.webhook.cluster.certificates import Certificates, renew_if_needed
from podferry.webhook.cluster.rotation import SECRET_KEYS
from tests.cluster.process import patient, wait_until
from tests.e2e import install
from tests.e2e.figures import Figures
from tests.e2e.manifests import Object, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.review_stream import review_stream
from tests.e2e.site import Site

SECRET = "secret/podferry-webhook"


def kubectl(site: Site, *words: str, stdin: str | None = None) -> str:
    return site.cluster.kubectl("-n", install.NAMESPACE, *words, stdin=stdin, timeout=patient(90))


def test_no_review_fails_while_replicas_and_certificates_change(
    site: Site, namespace: Namespace, figures: Figures
) -> None:
    manifest = pod("digits", container(command=["true"]), annotations=namespace.training_annotations())
    before, started = leaf(site), time.monotonic()
    with review_stream(namespace, manifest) as stream:
        wait_until("the stream to flow", lambda: stream.injected > 20, 30)
        replace_leaf(site)
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
    seconds = time.monotonic() - started
    assert stream.failures == []
    assert leaf(site) != before
    figures.record(
        "reviews while replicas are replaced",
        {
            "injected": stream.injected,
            "failed": len(stream.failures),
            "per second": round(stream.injected / seconds),
            "slowest, s": round(stream.slowest, 2),
        },
    )


def change_policy(site: Site) -> None:
    """Change a default; replicas that start from now on have it, others within seconds."""
    found = json.loads(kubectl(site, "get", "configmap/podferry-policy", "-o", "json"))["data"]["policy.yaml"]
    assert "grace: 30s" in found
    patch = {"data": {"policy.yaml": found.replace("grace: 30s", "grace: 31s")}}
    kubectl(site, "patch", "configmap/podferry-policy", "--type=merge", "-p", json.dumps(patch))


def policy_hash(site: Site, manifest: Object) -> str:
    """Of the policy that a pod would be injected by now."""
    words = ("create", "--dry-run=server", "-o", "json", "-f", "-")
    made = json.loads(site.cluster.kubectl(*words, stdin=json.dumps(manifest)))
    found: str = made["metadata"]["annotations"]["podferry.io/policy-hash"]
    return found


def replace_leaf(site: Site) -> None:
    """Store a certificate for another name, which the next replica that looks replaces."""
    data = json.loads(kubectl(site, "get", SECRET, "-o", "json"))["data"]
    current = Certificates(**{field: base64.b64decode(data[key]) for field, key in SECRET_KEYS.items()})
    other = renew_if_needed(current, ["other.podferry.svc"], datetime.now(UTC))
    assert other.bundle == current.bundle
    fields = {SECRET_KEYS[name]: getattr(other, name) for name in ("certificate", "key")}
    patch = {"data": {key: base64.b64encode(value).decode() for key, value in fields.items()}}
    kubectl(site, "patch", SECRET, "--type=merge", "-p", json.dumps(patch))


def leaf(site: Site) -> bytes:
    data = json.loads(kubectl(site, "get", SECRET, "-o", "json"))["data"]
    return base64.b64decode(data["tls.crt"])


def scale(site: Site, replicas: int) -> None:
    """Scale, and wait until the removed replicas are gone."""
    kubectl(site, "scale", install.WEBHOOK, f"--replicas={replicas}")
    wait_until(
        f"{replicas} replicas",
        lambda: len(kubectl(site, "get", "pods", install.SELECTOR, "-o", "name").split()) == replicas,
        60,
        interval=0.5,
    )
