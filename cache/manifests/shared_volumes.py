"""Renders the volumes of a cache that shares its data: the holders' one, and one per namespace of readers.

They are directories that an administrator has mounted on the nodes. ReadOnlyMany enforces nothing, and a pod
may mount a claim for writing: readers get a directory that is mounted read-only on the node.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.contract.cache_api import CACHE_LABEL, HOLDER_VOLUME, READER_CLAIM, READER_VOLUME
from podferry.contract.memory_sum import memory_sum
from podferry.contract.quantity import exact_quantity

Json = dict[str, Any]
STAGE, READ = "stage", "read"
"""Mounts in the administrator's directory: writable, and its read-only view."""
GLOB_CHARACTERS = frozenset("*?[")
WRITABLE, READ_ONLY = "ReadWriteMany", "ReadOnlyMany"


def holder_claim(spec: CacheSpec) -> str:
    """The name of the holders' claim."""
    return f"{spec.object_name}-stage"


def stage_name(spec: CacheSpec) -> str:
    """The cache's directory below the mounts. No name of Kubernetes has an underscore."""
    return f"{spec.namespace}_{spec.name}"


def sharing_namespaces(spec: CacheSpec) -> tuple[str, ...]:
    """The namespaces that get a claim: readers that are named, not those that match a glob."""
    named = (one for one in spec.readers if not GLOB_CHARACTERS & set(one))
    return tuple(dict.fromkeys((spec.namespace, *named)))


def shared_volumes(spec: CacheSpec) -> Iterator[Json]:
    """The volumes and claims."""
    root = PurePosixPath(spec.shared)
    holders = HOLDER_VOLUME.format(spec.namespace, spec.name)
    yield from _bound(spec, holders, (spec.namespace, holder_claim(spec)), root, WRITABLE)
    for namespace in sharing_namespaces(spec):
        name = READER_VOLUME.format(spec.namespace, spec.name, namespace)
        claim = (namespace, READER_CLAIM.format(spec.name))
        yield from _bound(spec, name, claim, root / READ / stage_name(spec), READ_ONLY)


def _bound(
    spec: CacheSpec, name: str, claim: tuple[str, str], path: PurePosixPath, mode: str
) -> Iterator[Json]:
    """A volume, and the claim that it is reserved for."""
    namespace, claim_name = claim
    labels = {"app.kubernetes.io/name": "podferry-cache", CACHE_LABEL: spec.name}
    size = exact_quantity(memory_sum(spec.ferry).data[0].bytes)
    common = {"accessModes": [mode], "storageClassName": ""}
    on_labelled_nodes = {"matchExpressions": [{"key": CACHE_LABEL, "operator": "Exists"}]}
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            **common,
            "capacity": {"storage": size},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": namespace, "name": claim_name},
            # Without the directory a pod waits; a directory on the disk in its place would be filled.
            "hostPath": {"path": str(path), "type": "Directory"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [on_labelled_nodes]}},
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim_name, "namespace": namespace, "labels": labels},
        "spec": {**common, "volumeName": name, "resources": {"requests": {"storage": size}}},
    }
