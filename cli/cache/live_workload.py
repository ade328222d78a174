"""Stops, starts and replaces the holders of a cache in a live cluster."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from podferry.cli.live_cluster import Json, LiveCluster, scope
from podferry.contract.cache_api import CACHE_LABEL, CLEARED_NODES, NODES_ANNOTATION
from podferry.contract.errors import NotFound

MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


class LiveWorkload:
    """The StatefulSet of a cache.

    Raises:
        NotFound: There is none.
    """

    def __init__(self, cluster: LiveCluster, namespace: str, name: str) -> None:
        self._cluster, self._namespace = cluster, namespace
        path, self._where = f"/apis/apps/v1/namespaces/{namespace}/statefulsets", scope(namespace)
        action = f"list StatefulSets in {self._where}"
        found = cluster.get(path, action, labelSelector=f"{CACHE_LABEL}={name}")["items"]
        if not found:
            raise NotFound.of(f"the cache {name} has no StatefulSet in {self._where}", "", "Create it again")
        self._object: Json = found[0]
        self._path = f"{path}/{self._object['metadata']['name']}"

    def stop(self) -> None:
        """Have no holders, and note how many there were."""
        count = self._object["spec"]["replicas"]
        if count:
            self._patch({CLEARED_NODES: str(count)}, 0)

    def start(self) -> int:
        """Have as many holders as before `stop`, else as `create` was asked for.

        Returns:
            How many are started; 0 for a cache that has some, to which nothing happens.
        """
        if self._object["spec"]["replicas"]:
            return 0
        count = _noted_nodes(self._object["metadata"].get("annotations") or {})
        self._patch({CLEARED_NODES: None}, count)
        return count

    def replace(self, pod: str) -> None:
        """Remove a holder's pod: the StatefulSet starts another one, without what this one has."""
        path = f"/api/v1/namespaces/{self._namespace}/pods/{pod}"
        with suppress(NotFound):
            self._cluster.request("DELETE", path, f"delete pods in {self._where}")

    def _patch(self, annotations: Mapping[str, str | None], replicas: int) -> None:
        body = {"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}}
        action = f"patch StatefulSets in {self._where}"
        self._cluster.request("PATCH", self._path, action, headers=MERGE_PATCH, body=body)


def _noted_nodes(annotations: Mapping[str, str]) -> int:
    """How many holders a cache without any is to have: 1 if no note says, as on older objects."""
    notes = (annotations.get(key, "") for key in (CLEARED_NODES, NODES_ANNOTATION))
    return next((int(one) for one in notes if one.isdecimal() and int(one)), 1)
