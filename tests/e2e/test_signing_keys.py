"""The key that signs stamps is replaced while pods are reviewed twice: another webhook changes them, too."""

from __future__ import annotations

import time

from podferry.contract.errors import InvalidSpec
from podferry.webhook.cluster.signing_keys import KEY_LIFETIME, PUBLISH_SECONDS, SigningKey
from podferry.webhook.pod.stamp import Signer
from tests.e2e import install
from tests.e2e.figures import Figures
from tests.e2e.manifests import Object, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.patching_webhook import patching_webhook
from tests.e2e.review_stream import review_stream
from tests.e2e.site import Site
from tests.e2e.webhook_secret import age_newest_key, signing_keys

OTHER = {"op": "add", "path": "/metadata/annotations/example.com~1other", "value": "called"}


def signed_by(namespace: Namespace, manifest: Object, key: SigningKey) -> bool:
    """Whether a pod that would be created now is signed with this key."""
    made = namespace.dry_run(manifest)
    assert made["metadata"]["annotations"]["example.com/other"] == "called"
    try:
        Signer((key.key,), int(time.time())).verify(made, namespace.name)
    except InvalidSpec:
        return False
    return True


def test_no_review_fails_across_a_rotation(site: Site, namespace: Namespace, figures: Figures) -> None:
    """Replicas with and without the new key, and replicas that sign with either, review the same pods."""
    manifest = pod("digits", container(command=["true"]), annotations=namespace.training_annotations())
    with patching_webhook(namespace, OTHER), review_stream(namespace, manifest, rate=50) as stream:
        stream.await_flow()
        (old, *_) = signing_keys(site.cluster)
        age_newest_key(site.cluster, KEY_LIFETIME)
        install.restart(site.cluster)
        (new, previous) = signing_keys(site.cluster)
        assert previous.key == old.key != new.key
        assert signed_by(namespace, manifest, old)
        age_newest_key(site.cluster, PUBLISH_SECONDS)
        install.restart(site.cluster)
        assert signed_by(namespace, manifest, new)
    figures.record("reviews across a rotation of the signing key", stream.figures())
    assert stream.failures == []
