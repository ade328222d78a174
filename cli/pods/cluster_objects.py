"""Reads the pods and pod templates of a live cluster."""

from __future__ import annotations

from podferry.cli.live_cluster import Json, LiveCluster, scope

LISTED_OWNERS = frozenset({"Job", "ReplicaSet", "StatefulSet", "DaemonSet"})
"""Owners whose templates are listed, directly or through their own owner: their pods would be shown twice."""
LISTS = {
    "Job": ("/apis/batch/v1", "jobs"),
    "CronJob": ("/apis/batch/v1", "cronjobs"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "Pod": ("/api/v1", "pods"),
}


def read_objects(cluster: LiveCluster, namespace: str | None = None) -> list[Json]:
    """Namespaces, controllers with pod templates, and pods without such a controller.

    Args:
        cluster: Where to look.
        namespace: None for all.

    Raises:
        AccessDenied: The account may not read one of them.
        Unavailable: The cluster does not respond.
    """
    found = _namespaces(cluster, namespace)
    where = "" if namespace is None else f"/namespaces/{namespace}"
    for kind, (api, plural) in LISTS.items():
        response = cluster.get(f"{api}{where}/{plural}", f"list {kind}s in {scope(namespace)}")
        objects = [{**item, "kind": kind} for item in response["items"]]
        found += [one for one in objects if not _shown_by_owner(one)]
    return found


def _namespaces(cluster: LiveCluster, name: str | None) -> list[Json]:
    path = "/api/v1/namespaces"
    if name is None:
        found = cluster.get(path, "list Namespaces")["items"]
    else:
        found = [cluster.get(f"{path}/{name}", f"get the Namespace {name}")]
    return [{**one, "kind": "Namespace"} for one in found]


def _shown_by_owner(thing: Json) -> bool:
    owners = thing["metadata"].get("ownerReferences") or []
    kinds = {"CronJob"} if thing["kind"] == "Job" else LISTED_OWNERS
    return thing["kind"] in {"Job", "Pod"} and any(one["kind"] in kinds for one in owners)
