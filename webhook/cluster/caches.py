"""The caches of the cluster: Services with podferry's label, read from the API server every few seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec
import structlog

from podferry.contract.cache_api import (
    CACHE_LABEL,
    PORT,
    READER_CLAIM,
    READER_VOLUME,
    READERS_ANNOTATION,
    SOURCE_ANNOTATION,
)
from podferry.contract.claims import SCHEME as CLAIM_SCHEME
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import FerryError, InvalidSpec
from podferry.webhook.cluster.failure_log import FailureLog
from podferry.webhook.cluster.kube import Cluster
from podferry.webhook.pod.known_cache import KnownCache

log = structlog.get_logger(__name__)
POLL_SECONDS = 5.0
NO_ADDRESS = {"", "None"}
"""Of a Service that has none yet, and of a headless one."""
MAX_OF_NAMESPACE, MAX_OF_ALL = 100, 5000
"""Caches of one namespace that its pods may use, and of all that are kept; podferry's own are read apart."""
MAX_SOURCE_LENGTH = 4096
"""Characters. An annotation may have 256 KiB, and anybody who may create Services writes one."""


class _Metadata(msgspec.Struct):
    namespace: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct, rename={"cluster_ip": "clusterIP"}):
    cluster_ip: str | None = None


class _Service(msgspec.Struct):
    """What counts of a Service."""

    metadata: _Metadata
    spec: _Spec | None = None


class _SharedCache(msgspec.Struct, frozen=True):
    """A cache of podferry's namespace, and globs over the other namespaces that may read it."""

    cache: KnownCache
    readers: tuple[str, ...]


class Caches:
    """What is known of them.

    Caches of podferry's own namespace may have readers elsewhere. In another namespace, a cache serves that
    namespace alone: who may create a Service there must not decide where pods of others get their data.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_namespace: dict[str, list[KnownCache]] = {}
        self._shared: list[_SharedCache] = []
        self._visible: dict[str, tuple[KnownCache, ...]] = {}
        self._volumes: frozenset[str] = frozenset()
        self._volume_failures = FailureLog(log, "warning", "volumes cannot be listed; pods copy from caches")
        self._failures = FailureLog(log, "warning", "caches cannot be listed; pods take data from its source")

    def visible_in(self, namespace: str) -> tuple[KnownCache, ...]:
        """The caches for pods of a namespace: its own ones first."""
        if namespace not in self._visible:
            found = (*self._by_namespace.get(namespace, ()), *self._shared_with(namespace))
            self._visible[namespace] = tuple(self._with_claim(one, namespace) for one in found)
        return self._visible[namespace]

    def _with_claim(self, cache: KnownCache, namespace: str) -> KnownCache:
        bound = READER_VOLUME.format(cache.namespace, cache.name, namespace) in self._volumes
        return msgspec.structs.replace(cache, claim=READER_CLAIM.format(cache.name)) if bound else cache

    def _shared_with(self, namespace: str) -> Iterator[KnownCache]:
        for one in self._shared:
            if one.cache.namespace == namespace or one.cache.source.startswith(f"{CLAIM_SCHEME}://"):
                continue  # a claim's name is that of another claim in another namespace
            if any(fnmatchcase(namespace, glob) for glob in one.readers):
                yield one.cache

    async def refresh(self) -> None:
        """List them; what was listed last remains if that fails."""
        try:
            shared = [one async for one in self._listed(self._cluster.namespace)]
            by_namespace = await self._by_owner()
        except FerryError as error:
            self._failures.failed(error)
            return
        self._failures.succeeded()
        await self._refresh_volumes()
        self._shared, self._by_namespace, self._visible = shared, by_namespace, {}

    async def _refresh_volumes(self) -> None:
        try:
            listed = [one async for one in self._cluster.labelled_volumes(CACHE_LABEL)]
        except FerryError as error:
            self._volume_failures.failed(error)
            return
        self._volume_failures.succeeded()
        self._volumes = frozenset(one["metadata"]["name"] for one in listed if _is_bound(one))

    async def _by_owner(self) -> dict[str, list[KnownCache]]:
        """The caches of each namespace: not so many that their owners could fill the webhook's memory.

        Only those that are kept count: one namespace must not hide the caches of the next.
        """
        found: dict[str, list[KnownCache]] = {}
        count = 0
        async for one in self._listed():
            mine = found.setdefault(one.cache.namespace, [])
            if len(mine) >= MAX_OF_NAMESPACE:
                continue
            if count >= MAX_OF_ALL:
                log.warning("there are more caches than are kept", limit=MAX_OF_ALL)
                break
            mine.append(one.cache)
            count += 1
        return found

    async def _listed(self, namespace: str = "") -> AsyncIterator[_SharedCache]:
        """Services are read here once, not for each review, and their other fields are not kept."""
        async for service in self._cluster.labelled_services(CACHE_LABEL, namespace):
            if (found := _read_service(service)) is not None:
                yield found

    async def run(self, seconds: float = POLL_SECONDS) -> None:
        """Refresh for ever."""
        while True:
            await self.refresh()
            await asyncio.sleep(seconds)


def _is_bound(volume: Mapping[str, Any]) -> bool:
    """Whether its claim has it, for longer than the pods that use it now.

    Only administrators create volumes: their names and claims are right.
    """
    is_deleted = "deletionTimestamp" in (volume.get("metadata") or {})
    return (volume.get("status") or {}).get("phase") == "Bound" and not is_deleted


def known_cache(service: Any) -> KnownCache | None:
    """The cache behind a Service; None if it names no dataset, has no address, or fields of other types."""
    found = _read_service(service)
    return found.cache if found else None


def _read_service(service: Any) -> _SharedCache | None:
    try:
        read = msgspec.convert(service, _Service)
    except msgspec.ValidationError:  # one of them must not hide the others
        return None
    address = (read.spec and read.spec.cluster_ip) or ""
    name = (read.metadata.labels or {}).get(CACHE_LABEL)
    annotations = read.metadata.annotations or {}
    source = annotations.get(SOURCE_ANNOTATION, "")
    if not name or address in NO_ADDRESS or len(source) > MAX_SOURCE_LENGTH:
        return None
    try:
        reference = parse_reference(source)
    except InvalidSpec:
        return None
    host = f"[{address}]" if ":" in address else address
    cache = KnownCache(name, str(reference), f"http://{host}:{PORT}", read.metadata.namespace)
    return _SharedCache(cache, tuple(annotations.get(READERS_ANNOTATION, "").split()))
