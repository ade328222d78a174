"""Pods take a dataset from a cache first: which ones, and what their agent needs for it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podferry.contract.cache_api import AUDIENCE, CACHE_LABEL
from podferry.contract.declared_datasets import Declared
from podferry.contract.errors import Problem
from podferry.contract.location_globs import allows
from podferry.contract.spec import FerrySpec
from podferry.webhook.injection.volumes import ROOT_DIR, TOKEN_VOLUME
from podferry.webhook.pod.json_patch import Draft, find
from podferry.webhook.pod.known_cache import KnownCache
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import AllowedLocations

TOKEN_DIR = f"{ROOT_DIR}/secrets/cache"
TOKEN_FILE = f"{TOKEN_DIR}/token"
TOKEN_SECONDS = 600
"""The least that Kubernetes allows; the kubelet renews it."""
HOSTNAME = "kubernetes.io/hostname"
NEAR = ("spec", "affinity", "podAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
WEIGHT = 100
"""The largest: a node that has the data counts more than any other preference."""


def allowed_caches(namespace: Namespace, allowed: Sequence[AllowedLocations]) -> tuple[KnownCache, ...]:
    """The caches that pods of a namespace may read; `allowed` is what the policy allows there.

    Those of podferry's namespace are the administrator's. Anybody who may create a Service in the pods' own
    namespace decides what its caches answer, so these are services as those of stores are.
    """
    guards = [one.endpoints for one in allowed]
    return tuple(
        cache
        for cache in namespace.caches
        if cache.namespace != namespace.name or all(allows(globs, cache.url) for globs in guards)
    )


def declared_datasets(declared: Mapping[str, str], caches: Sequence[KnownCache]) -> Declared:
    """What the names are that a pod may use: the policy's datasets, and caches.

    A name of two datasets is a problem of those who use it, not of others in the namespace.
    """
    meanings: dict[str, dict[str, str]] = {
        name: {source: "of the policy"} for name, source in declared.items()
    }
    for cache in caches:
        meanings.setdefault(cache.name, {}).setdefault(cache.source, f"of the cache in {cache.namespace}")
    return {
        name: next(iter(found)) if len(found) == 1 else _ambiguous(found) for name, found in meanings.items()
    }


def _ambiguous(found: Mapping[str, str]) -> Problem:
    measured = ", ".join(f"{source} {whose}" for source, whose in found.items())
    return Problem("the name means several datasets", measured, "Write the URI, or have one of them renamed")


def caches_of(spec: FerrySpec, caches: Sequence[KnownCache]) -> dict[str, KnownCache]:
    """The cache of each dataset that has one, by the dataset's name; of two, the first."""
    by_uri: dict[str, KnownCache] = {}
    for cache in caches:
        by_uri.setdefault(cache.uri, cache)
    found = {one.name: by_uri.get(str(one.parsed.uri)) for one in spec.datasets}
    return {name: cache for name, cache in found.items() if cache is not None}


def cache_flags(caches: Mapping[str, KnownCache]) -> Iterator[str]:
    """Arguments of the agent."""
    for name, cache in caches.items():
        yield f"--dataset-cache={f'{name}=' if name else ''}{cache.url}"
    if caches:
        yield f"--cache-token={TOKEN_FILE}"


def cache_volumes(caches: Mapping[str, KnownCache]) -> Iterator[dict[str, Any]]:
    """The token's volume: it is of no use to anybody but holders."""
    if caches:
        token = {"audience": AUDIENCE, "expirationSeconds": TOKEN_SECONDS, "path": "token"}
        yield {"name": TOKEN_VOLUME, "projected": {"sources": [{"serviceAccountToken": token}]}}


def cache_mounts(caches: Mapping[str, KnownCache]) -> Iterator[dict[str, Any]]:
    """Mounts of the agent; the trainer has none."""
    if caches:
        yield {"name": TOKEN_VOLUME, "mountPath": TOKEN_DIR, "readOnly": True}


def prefer_nodes(draft: Draft, caches: Mapping[str, KnownCache]) -> None:
    """Have the scheduler prefer the nodes of the holders."""
    for cache in dict.fromkeys(caches.values()):
        term = {
            "labelSelector": {"matchLabels": {CACHE_LABEL: cache.name}},
            "namespaces": [cache.namespace],
            "topologyKey": HOSTNAME,
        }
        preference = {"weight": WEIGHT, "podAffinityTerm": term}
        if preference not in (find(draft.document, NEAR) or ()):
            draft.append(NEAR, preference)
