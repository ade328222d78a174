"""An invalid policy: refused when it is applied; if nothing refused it, the last valid one is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.process import ClusterError
from tests.e2e import install
from tests.e2e.manifests import container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site

LOGGED = "invalid policy; keeping the last valid one"


@pytest.fixture
def policy(site: Site) -> Iterator[dict[str, Any]]:
    """The policy's ConfigMap, with a misspelled key; at the end the valid one is there again."""
    valid = site.cluster.get("-n", install.NAMESPACE, "configmap/podferry-policy")
    text = valid["data"]["policy.yaml"]
    metadata = {"name": "podferry-policy", "namespace": install.NAMESPACE}
    data = {"policy.yaml": f"{text}\nalowed: {{}}\n"}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    site.cluster.kubectl("apply", "-k", str(install.OVERLAY))


def test_an_invalid_policy_is_refused(site: Site, policy: dict[str, Any]) -> None:
    with pytest.raises(ClusterError, match=r"policy\.podferry\.io") as caught:
        site.cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(policy))
    assert "alowed: unknown key in the policy. Did you mean 'allowed'?" in str(caught.value)
    other = policy | {"metadata": {"name": "other", "namespace": install.NAMESPACE}}
    site.cluster.kubectl("apply", "-f", "-", "--dry-run=server", stdin=yaml.safe_dump(other))


def test_a_start_without_the_policys_config_map(site: Site, policy: dict[str, Any]) -> None:
    """Replicas become ready and inject: `webhook_down` waits for both."""
    with install.webhook_down(site.cluster):
        site.cluster.kubectl("-n", install.NAMESPACE, "delete", "configmap", policy["metadata"]["name"])
    assert LOGGED in site.cluster.kubectl("-n", install.NAMESPACE, "logs", install.WEBHOOK)


def test_a_start_with_an_invalid_policy(site: Site, namespace: Namespace, policy: dict[str, Any]) -> None:
    with install.webhook_down(site.cluster):
        site.cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(policy))
    answer = namespace.start(
        pod("digits", container(command=["true"]), annotations=namespace.training_annotations())
    )
    assert answer.code == 0
    log = site.cluster.kubectl("-n", install.NAMESPACE, "logs", install.WEBHOOK)
    assert LOGGED in log
    assert "alowed: unknown key in the policy" in log
