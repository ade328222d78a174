"""An in-memory cluster for tests: what `KubeClient` finds on an API server."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from podferry.contract.errors import FerryError, NotFound


class MemoryCluster:
    """One Secret, webhook configurations and namespaces.

    Attributes:
        secrets: Secrets by name; each write raises its resourceVersion.
        bundles: The CA bundle of each `kind/name` configuration; empty if it has none yet.
        namespaces: Labels by name.
        failure: Raised by every call while it is set.
        calls: Number of calls.
    """

    def __init__(self, secret: str, configuration: str) -> None:
        self.secrets: dict[str, dict[str, Any]] = {
            secret: {"metadata": {"name": secret, "resourceVersion": "1"}}
        }
        kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
        self.bundles = {f"{kind}/{configuration}": "" for kind in kinds}
        self.namespaces: dict[str, dict[str, str]] = {}
        self.failure: FerryError | None = None
        self.calls = 0

    async def secret(self, name: str) -> dict[str, Any]:
        """See `podferry.webhook.kube.Cluster`."""
        return copy.deepcopy(self._find(self.secrets, name))

    async def replace_secret(self, secret: Mapping[str, Any]) -> bool:
        """See `podferry.webhook.kube.Cluster`."""
        metadata = secret["metadata"]
        current = self._find(self.secrets, metadata["name"])
        version = current["metadata"]["resourceVersion"]
        if metadata["resourceVersion"] != version:
            return False
        stored = copy.deepcopy(dict(secret))
        stored["metadata"]["resourceVersion"] = str(int(version) + 1)
        self.secrets[metadata["name"]] = stored
        return True

    async def trust(self, kind: str, name: str, bundle: str) -> bool:
        """See `podferry.webhook.kube.Cluster`."""
        key = f"{kind}/{name}"
        changed: bool = self._find(self.bundles, key) != bundle
        self.bundles[key] = bundle
        return changed

    async def namespace_labels(self, name: str) -> dict[str, str]:
        """See `podferry.webhook.kube.Cluster`."""
        return dict(self._find(self.namespaces, name))

    def _find(self, things: Mapping[str, Any], name: str) -> Any:
        self.calls += 1
        if self.failure is not None:
            raise self.failure
        if name not in things:
            raise NotFound.of(f"there is no {name}")
        return things[name]
