"""Finds and removes the objects of a cache in a live cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from podferry.cli.live_cluster import Json, LiveCluster, scope
from podferry.contract.cache_api import CACHE_LABEL, HOLDER_VOLUME
from podferry.contract.errors import AccessDenied, NotFound

RBAC = "/apis/rbac.authorization.k8s.io/v1"
BATCH = "/apis/batch/v1"
NAMESPACED = {
    "CronJob": (BATCH, "cronjobs"),
    "Job": (BATCH, "jobs"),
    "Service": ("/api/v1", "services"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "RoleBinding": (RBAC, "rolebindings"),
    "Role": (RBAC, "roles"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
}
"""The kinds of a cache's objects, in the order of their removal: without the Service, the webhook gives the
cache to no further pod. `podferry cache job` renders the first two, and rights as for holders."""
WITH_PODS = {"propagationPolicy": "Background"}
"""A Job's pods would stay otherwise."""
CORE, CLAIMS, VOLUMES = "/api/v1", "persistentvolumeclaims", "persistentvolumes"
CLAIM, CLAIM_SOURCE, VOLUME = "PersistentVolumeClaim", "persistentVolumeClaim", "PersistentVolume"
HOLDERS = {"app.kubernetes.io/name": "podferry-cache"}
"""The label of holders and what belongs to them; the pods of Jobs have another one."""
CLUSTER_WIDE = {"ClusterRoleBinding": (RBAC, "clusterrolebindings")}
"""Their names and subjects have the namespace."""


class LiveObject(NamedTuple):
    """An object of a cache: its kind, its name, and its path at the API server."""

    kind: str
    name: str
    path: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


def find_objects(cluster: LiveCluster, namespace: str, name: str) -> list[LiveObject]:
    """The objects that `podferry cache create` has rendered for a cache, and its Jobs, by their label.

    Not the ClusterRole: all caches share it.
    """
    found: list[LiveObject] = []
    for kind, (api, plural) in NAMESPACED.items():
        path, action = f"{api}/namespaces/{namespace}/{plural}", f"list {kind}s in {scope(namespace)}"
        names = [one["metadata"]["name"] for one in _labelled(cluster, path, action, name)]
        found += [LiveObject(kind, one, f"{path}/{one}") for one in names]
    for kind, (api, plural) in CLUSTER_WIDE.items():
        path = f"{api}/{plural}"
        objects = _labelled(cluster, path, f"list {kind}s", name)
        names = [one["metadata"]["name"] for one in objects if _binds(one, namespace)]
        found += [LiveObject(kind, one, f"{path}/{one}") for one in names]
    return [*found, *(thing for _, thing in _volumes(cluster, namespace, name))]


def remove_unshared(
    cluster: LiveCluster, namespace: str, name: str, kept: Collection[str] = ()
) -> Iterator[LiveObject]:
    """Remove the volumes through which a cache shares no more, with their claims.

    Pods would wait for data that nobody shares, or read what is not for their namespace any more. Who may not
    list them has created none.

    Args:
        cluster: Where it is.
        namespace: Of the cache.
        name: Of the cache.
        kept: Names of the volumes through which it shares.
    """
    try:
        found = tuple(_volumes(cluster, namespace, name))
    except AccessDenied:
        return
    for volume, thing in found:
        if volume not in kept:
            remove_object(cluster, thing)
            yield thing


def is_shared(cluster: LiveCluster, namespace: str, name: str) -> bool:
    """Whether a cache has volumes through which it shares; raises `AccessDenied`."""
    return any(True for _ in _volumes(cluster, namespace, name))


def _volumes(cluster: LiveCluster, namespace: str, name: str) -> Iterator[tuple[str, LiveObject]]:
    """The volumes through which its data is shared, and their claims; each with the volume's name."""
    holders = HOLDER_VOLUME.format(namespace, name)
    for claim in _labelled(cluster, f"{CORE}/{CLAIMS}", "list PersistentVolumeClaims", name):
        volume = claim["spec"].get("volumeName", "")
        if _is_of(volume, holders):
            where, its_name = claim["metadata"]["namespace"], claim["metadata"]["name"]
            path = f"{CORE}/namespaces/{where}/{CLAIMS}/{its_name}"
            yield volume, LiveObject(CLAIM, its_name, path)
    for one in _labelled(cluster, f"{CORE}/{VOLUMES}", "list PersistentVolumes", name):
        its_name = one["metadata"]["name"]
        if _is_of(its_name, holders):
            yield its_name, LiveObject(VOLUME, its_name, f"{CORE}/{VOLUMES}/{its_name}")


def _is_of(name: str, volume: str) -> bool:
    return name == volume or name.startswith(f"{volume}.")


def remove_object(cluster: LiveCluster, thing: LiveObject) -> None:
    """Remove it; nothing happens if it is gone already."""
    with suppress(NotFound):
        cluster.request("DELETE", thing.path, f"delete {thing.kind}s", WITH_PODS)


def users_of_claims(cluster: LiveCluster, removed: Iterable[LiveObject]) -> Iterator[str]:
    """The pods, as NAMESPACE/NAME, that keep removed claims from going: also those that have ended.

    Not the holders, which end by themselves.
    """
    for thing in removed:
        if thing.kind != CLAIM:
            continue
        namespace = thing.path.removeprefix(f"{CORE}/namespaces/").partition("/")[0]
        path = f"{CORE}/namespaces/{namespace}/pods"
        for pod in cluster.get(path, f"list Pods in {scope(namespace)}")["items"]:
            volumes = () if _is_holder(pod) else pod["spec"].get("volumes") or ()
            if any((one.get(CLAIM_SOURCE) or {}).get("claimName") == thing.name for one in volumes):
                yield f"{namespace}/{pod['metadata']['name']}"


def _is_holder(pod: Json) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return CACHE_LABEL in labels and labels.items() >= HOLDERS.items()


def _labelled(cluster: LiveCluster, path: str, action: str, name: str) -> list[Json]:
    found: list[Json] = cluster.get(path, action, labelSelector=f"{CACHE_LABEL}={name}")["items"]
    return found


def _binds(binding: Json, namespace: str) -> bool:
    return any(one.get("namespace") == namespace for one in binding.get("subjects") or ())
