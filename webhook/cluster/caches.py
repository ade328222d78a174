"""The caches of the cluster: Services with podferry's label, read from the API server every few seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import structlog

from podferry.contract.cache_api import CACHE_LABEL, PORT, READERS_ANNOTATION, SOURCE_ANNOTATION
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import FerryError, InvalidSpec
from podferry.webhook.cluster.failure_log import FailureLog
from podferry.webhook.cluster.kube import Cluster
from podferry.webhook.pod.known_cache import KnownCache

log = structlog.get_logger(__name__)
POLL_SECONDS = 5.0
NO_ADDRESS = {"", "None"}
"""Of a Service that has none yet, and of a headless one."""


class Caches:
    """What is known of them.

    Caches of podferry's own namespace may have readers elsewhere. In another namespace, a cache serves that
    namespace alone: who may create a Service there must not decide where pods of others get their data.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._services: Sequence[Mapping[str, Any]] = ()
        self._failures = FailureLog(log, "warning", "caches cannot be listed; pods take data from its source")

    def visible_in(self, namespace: str) -> tuple[KnownCache, ...]:
        """The caches for pods of a namespace: its own ones first."""
        mine = [one for one in self._services if one["metadata"]["namespace"] == namespace]
        shared = [one for one in self._services if one not in mine and self._is_shared(one, namespace)]
        return tuple(cache for one in (*mine, *shared) if (cache := known_cache(one)) is not None)

    def _is_shared(self, service: Mapping[str, Any], namespace: str) -> bool:
        globs = (service["metadata"].get("annotations") or {}).get(READERS_ANNOTATION, "").split()
        own = service["metadata"]["namespace"] == self._cluster.namespace
        return own and any(fnmatchcase(namespace, glob) for glob in globs)

    async def refresh(self) -> None:
        """List them; what was listed last remains if that fails."""
        try:
            self._services = await self._cluster.labelled_services(CACHE_LABEL)
            self._failures.succeeded()
        except FerryError as error:
            self._failures.failed(error)

    async def run(self, seconds: float = POLL_SECONDS) -> None:
        """Refresh for ever."""
        while True:
            await self.refresh()
            await asyncio.sleep(seconds)


def known_cache(service: Mapping[str, Any]) -> KnownCache | None:
    """The cache behind a Service, or None if it names no dataset or has no address."""
    metadata, address = service["metadata"], (service.get("spec") or {}).get("clusterIP") or ""
    name = (metadata.get("labels") or {}).get(CACHE_LABEL)
    source = (metadata.get("annotations") or {}).get(SOURCE_ANNOTATION, "")
    if not name or address in NO_ADDRESS:
        return None
    try:
        reference = parse_reference(source)
    except InvalidSpec:
        return None
    host = f"[{address}]" if ":" in address else address
    return KnownCache(name, str(reference), f"http://{host}:{PORT}", metadata["namespace"])
