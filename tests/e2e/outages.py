"""What can happen to podferry's webhook, each for the duration of a block.

The webhook's processes must run on this machine; only a cluster that the tests start can lose its API server.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podferry.webhook.cluster.certificates import renew_if_needed
from podferry.webhook.cluster.rotation import SECRET_KEYS
from tests.cluster.cluster import Cluster
from tests.cluster.node import Node
from tests.e2e import install

SECRET = ("-n", install.NAMESPACE, "secret/podferry-webhook")
SERVICE = "podferry-webhook.podferry.svc"
Outage = Callable[[Cluster], "contextlib.AbstractContextManager[None]"]


def _replicas() -> list[int]:
    """The process ids of the webhook's replicas on this machine."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"webhook" in words and any(word.startswith(b"--policy=/etc/podferry") for word in words):
                found.append(int(entry.name))
    assert found, "no replica of the webhook runs on this machine"
    return found


@contextlib.contextmanager
def slow(_: Cluster) -> Iterator[None]:
    """The replicas accept connections and never respond."""
    stopped = _replicas()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):  # the kubelet may have killed it
                os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def expired(cluster: Cluster) -> Iterator[None]:
    """The certificate has expired while no replica ran."""
    with install.webhook_down(cluster):
        secret = cluster.get(*SECRET)
        old = renew_if_needed(None, [SERVICE], datetime.now(UTC) - timedelta(days=3 * 365))
        made = {name: base64.b64encode(getattr(old, field)).decode() for field, name in SECRET_KEYS.items()}
        cluster.kubectl("replace", "-f", "-", stdin=json.dumps(secret | {"data": secret["data"] | made}))
    yield


@contextlib.contextmanager
def broken_policy(cluster: Cluster) -> Iterator[None]:
    """The policy was broken while no replica ran to refuse it."""
    name = ("-n", install.NAMESPACE, "configmap/podferry-policy")
    valid = cluster.get(*name)
    with install.webhook_down(cluster):
        _replace(cluster, valid, {"policy.yaml": "kind: InjectionPolicy\nimage: [\n"})
    try:
        yield
    finally:
        _replace(cluster, cluster.get(*name), valid["data"])


def _replace(cluster: Cluster, config_map: Mapping[str, object], data: Mapping[str, str]) -> None:
    cluster.kubectl("replace", "-f", "-", stdin=json.dumps({**config_map, "data": data}))


@contextlib.contextmanager
def secret_gone(cluster: Cluster) -> Iterator[None]:
    """The Secret was deleted while the replicas ran."""
    cluster.kubectl("delete", *SECRET)
    try:
        yield
    finally:
        cluster.kubectl("apply", "-k", str(install.OVERLAY))
        install.restart(cluster)


@contextlib.contextmanager
def api_server_restarted(cluster: Cluster) -> Iterator[None]:
    """The API server was killed, and answers again."""
    if not isinstance(cluster.backend, Node):
        pytest.skip("the API server of this cluster is not ours to kill")
    cluster.backend.restart_api_server()
    yield


@contextlib.contextmanager
def replica_killed(_: Cluster) -> Iterator[None]:
    """One replica was killed a moment ago."""
    os.kill(_replicas()[0], signal.SIGKILL)
    yield


OUTAGES: dict[str, Outage] = {
    "none": lambda _: contextlib.nullcontext(),
    "down": install.webhook_down,
    "slow": slow,
    "certificate expired": expired,
    "policy broken": broken_policy,
    "Secret gone": secret_gone,
    "API server restarted": api_server_restarted,
    "replica killed": replica_killed,
}
