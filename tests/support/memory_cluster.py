"""An in-memory cluster for tests: what `KubeClient` finds on an API server."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from podferry.contract.errors import FerryError, NotFound
from podferry.webhook.cluster.kube import MutatingWebhooks


class MemoryCluster:
    """One Secret, webhook configurations, ConfigMaps and namespaces.

    Attributes:
        secrets: Secrets by name; each write raises its resourceVersion.
        config_maps: ConfigMaps by name; each write raises its resourceVersion.
        bundles: The CA bundle of each `kind/name` configuration; empty if it has none yet.
        webhooks: The entries of each MutatingWebhookConfiguration, by name; each write raises the version.
        namespaces: Labels by name.
        services: Services of all namespaces; volumes: PersistentVolumes.
        failure: Raised by every call while it is set.
        calls: Number of calls.
    """

    namespace = "podferry"

    def __init__(self, secret: str, configuration: str) -> None:
        self.secrets: dict[str, dict[str, Any]] = {
            secret: {"metadata": {"name": secret, "resourceVersion": "1"}}
        }
        self.config_maps: dict[str, dict[str, Any]] = {}
        kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
        self.bundles = {f"{kind}/{configuration}": "" for kind in kinds}
        self.webhooks: dict[str, MutatingWebhooks] = {configuration: MutatingWebhooks("1", [])}
        self.namespaces: dict[str, dict[str, str]] = {}
        self.services: list[dict[str, Any]] = []
        self.volumes: list[dict[str, Any]] = []
        self.failure: FerryError | None = None
        self.calls = 0

    async def secret(self, name: str) -> dict[str, Any]:
        """See `podferry.webhook.cluster.kube.Cluster`."""
        return copy.deepcopy(self._find(self.secrets, name))

    async def replace_secret(self, secret: Mapping[str, Any]) -> bool:
        """See `podferry.webhook.cluster.kube.Cluster`."""
        return self._replace(self.secrets, secret)

    async def config_map(self, name: str) -> dict[str, Any]:
        """See `podferry.webhook.cluster.kube.Cluster`."""
        return copy.deepcopy(self._find(self.config_maps, name))

    async def replace_config_map(self, config_map: Mapping[str, Any]) -> bool:
        """See `podferry.webhook.cluster.kube.Cluster`."""
        return self._replace(self.config_maps, config_map)

    def add_config_map(self, name: str) -> None:
        """Add an empty one."""
        self.config_maps[name] = {"metadata": {"name": name, "resourceVersion": "1"}}

    def _replace(self, things: dict[str, dict[str, Any]], new: Mapping[str, Any]) -> bool:
        metadata = new["metadata"]
        current = self._find(things, metadata["name"])
        version = current["metadata"]["resourceVersion"]
        if metadata["resourceVersion"] != version:
            return False
        stored = copy.deepcopy(dict(new))
        stored["metadata"]["resourceVersion"] = str(int(version) + 1)
        things[metadata["name"]] = stored
        return True

    async def trust(self, kind: str, name: str, bundle: str) -> bool:
        """See `podferry.webhook.cluster.kube.Cluster`."""
        key = f"{kind}/{name}"
        changed: bool = self._find(self.bundles, key) != bundle
        self.bundles[key] = bundle
        return changed

    async def mutating_webhooks(self, name: str) -> MutatingWebhooks:
        """See `podferry.webhook.cluster.kube.Cluster`."""
        found: MutatingWebhooks = self._find(self.webhooks, name)
        return found

    async def replace_mutating_webhooks(
        self, name: str, version: str, webhooks: Sequence[Mapping[str, Any]]
    ) -> bool:
        """See `podferry.webhook.cluster.kube.Cluster`."""
        if self._find(self.webhooks, name).version != version:
            return False
        self.webhooks[name] = MutatingWebhooks(str(int(version) + 1), [dict(one) for one in webhooks])
        return True

    async def namespace_labels(self, name: str) -> dict[str, str]:
        """See `podferry.webhook.cluster.kube.Cluster`."""
        return dict(self._find(self.namespaces, name))

    def _find(self, things: Mapping[str, Any], name: str) -> Any:
        self.calls += 1
        if self.failure is not None:
            raise self.failure
        if name not in things:
            raise NotFound.of(f"there is no {name}")
        return things[name]

    async def labelled_services(self, label: str, namespace: str = "") -> AsyncIterator[dict[str, Any]]:
        """See `podferry.webhook.cluster.kube.Cluster`."""
        self.calls += 1
        if self.failure is not None:
            raise self.failure
        for one in self.services:
            metadata = one["metadata"]
            if label in metadata.get("labels", {}) and namespace in {"", metadata["namespace"]}:
                yield copy.deepcopy(one)

    async def labelled_volumes(self, label: str) -> AsyncIterator[dict[str, Any]]:
        """See `podferry.webhook.cluster.kube.Cluster`."""
        for one in self.volumes:
            if label in one["metadata"].get("labels", {}):
                yield copy.deepcopy(one)
