"""Labels of namespaces, from the API server, with a cache."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Protocol

import msgspec
import structlog

from podferry.contract.errors import FerryError
from podferry.webhook.cluster.caches import Caches
from podferry.webhook.cluster.kube import Cluster
from podferry.webhook.pod.namespace import Namespace

log = structlog.get_logger(__name__)

LABEL_CACHE_SECONDS = 30.0
"""How long a namespace's labels are cached."""


class Namespaces(Protocol):
    """A source of namespace labels."""

    async def find(self, name: str) -> Namespace:
        """The namespace; without labels if they cannot be read."""


class UnknownNamespaces:
    """Has no labels: outside a cluster."""

    async def find(self, name: str) -> Namespace:
        """See `Namespaces`."""
        return Namespace(name, labels_known=False)


class ClusterNamespaces:
    """Reads labels from the API server, with a cache."""

    def __init__(
        self,
        cluster: Cluster,
        caches: Caches | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster, self._caches, self._clock = cluster, caches, clock
        self._cache: dict[str, tuple[float, Namespace]] = {}

    async def find(self, name: str) -> Namespace:
        """See `Namespaces`."""
        found = await self._labelled(name)
        caches = self._caches.visible_in(name) if self._caches else ()
        return msgspec.structs.replace(found, caches=caches) if caches else found

    async def _labelled(self, name: str) -> Namespace:
        read_at, namespace = self._cache.get(name, (-math.inf, Namespace(name, labels_known=False)))
        if self._clock() - read_at < LABEL_CACHE_SECONDS:
            return namespace
        try:
            namespace = Namespace(name, await self._cluster.namespace_labels(name))
        except FerryError as error:
            # Without labels, the namespace counts as unrestricted: Pod Security admission still applies.
            log.warning(
                "namespace labels unknown", namespace=name, problems=[str(one) for one in error.problems]
            )
            return namespace
        self._cache[name] = (self._clock(), namespace)
        return namespace
