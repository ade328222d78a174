"""Creates and changes the objects of a cache in a live cluster, as `kubectl apply` would."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from podferry.cache.manifests.merge_patch import merge_patch
from podferry.cli.cache.live_objects import CLAIM, CLAIMS, CLUSTER_WIDE, CORE, NAMESPACED, RBAC, VOLUMES
from podferry.cli.live_cluster import Json, LiveCluster, scope
from podferry.contract.errors import AccessDenied, AlreadyExists, FerryError, NotFound, Problem, Refused
from podferry.sidecar.runtime.concurrency import merge_errors

KINDS: Mapping[str, tuple[str, str]] = {
    **NAMESPACED,
    **CLUSTER_WIDE,
    "ClusterRole": (RBAC, "clusterroles"),
    "PersistentVolume": (CORE, VOLUMES),
    "PersistentVolumeClaim": (CORE, CLAIMS),
}
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
WORKLOAD = "StatefulSet"
OF_THE_CLAIM_BEFORE = ("uid", "resourceVersion")
"""Fields by which a volume is reserved for one claim, not for its name."""
KEPT_BY_SERVER = ("resourceVersion", "managedFields")
"""Fields of the metadata that change with the status."""


class Applied(NamedTuple):
    """What has been done to an object."""

    kind: str
    name: str
    outcome: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name} {self.outcome}"


def apply_objects(cluster: LiveCluster, documents: Iterable[Mapping[str, Any]]) -> Iterator[Applied]:
    """Apply them in their order; an object that is already as it should be is not changed.

    Raises:
        AccessDenied: Every right that the account lacks. No holder is started then.
        InvalidSpec: The API server does not accept an object.
        NotFound: A namespace is missing.
        Refused: An object is being deleted.

    A namespace of readers that takes no claim, or is missing, is named in the end: it stops no one else.
    """
    problems: list[Problem] = []
    of_readers: list[FerryError] = []
    documents = tuple(documents)
    holders = next(one["metadata"]["namespace"] for one in documents if one["kind"] == WORKLOAD)
    for document in documents:
        if problems and document["kind"] == WORKLOAD:
            break  # its pods could not do their work
        try:
            yield _apply(cluster, document)
        except (AccessDenied, NotFound) as error:
            if document["kind"] == CLAIM and document["metadata"]["namespace"] != holders:
                of_readers.append(error)
            elif isinstance(error, NotFound):
                raise
            else:
                problems += error.problems
    AccessDenied.raise_any(problems)
    merged = merge_errors(of_readers)
    if merged is not None:
        raise merged


def _apply(cluster: LiveCluster, document: Mapping[str, Any]) -> Applied:
    kind, metadata = document["kind"], document["metadata"]
    api, plural = KINDS[kind]
    namespace, name = metadata.get("namespace"), metadata["name"]
    collection = f"{api}/namespaces/{namespace}/{plural}" if namespace else f"{api}/{plural}"
    objects = f"{kind}s in {scope(namespace)}" if namespace else f"{kind}s"
    try:
        found = cluster.get(f"{collection}/{name}", f"get {objects}")
    except NotFound:
        try:
            _create(cluster, collection, objects, document)
            return Applied(kind, name, "created")
        except AlreadyExists:  # another one creates it at this moment: caches share the ClusterRole
            found = {}
    _refuse_deleted(found, document)
    action, body = f"patch {objects}", {**_patch(document, found), **_rebound(found)}
    answer = cluster.request("PATCH", f"{collection}/{name}", action, headers=MERGE_PATCH, body=body)
    return Applied(kind, name, "unchanged" if _content(json.loads(answer)) == _content(found) else "changed")


def _patch(document: Mapping[str, Any], found: Json) -> Json:
    """The patch; a claim that exists keeps its specification, of which nothing can change."""
    body = merge_patch(document)
    if document["kind"] == CLAIM and found:
        del body["spec"]
    return body


def _rebound(found: Json) -> Json:
    """What lets a new claim of the same name have a volume whose claim has gone, with its namespace."""
    if (found.get("status") or {}).get("phase") != "Released":
        return {}
    claim = {**found["spec"]["claimRef"], **dict.fromkeys(OF_THE_CLAIM_BEFORE)}
    return {"spec": {"claimRef": claim}}


def _refuse_deleted(found: Json, document: Mapping[str, Any]) -> None:
    """A change of an object that is being deleted would have no effect."""
    if "deletionTimestamp" in found.get("metadata", {}):
        metadata = document["metadata"]
        what = f"the {document['kind']} {metadata['name']} is being deleted, and something still uses it"
        remedy = (
            "Try again when it is gone: a claim goes when the pods that mount it, ended or not, are deleted"
        )
        raise Refused.of(what, scope(metadata["namespace"]) if "namespace" in metadata else "", remedy)


def _create(cluster: LiveCluster, collection: str, objects: str, document: Mapping[str, Any]) -> None:
    try:
        cluster.request("POST", collection, f"create {objects}", body=document)
    except NotFound as error:
        [problem] = error.problems
        namespace = document["metadata"].get("namespace", "")
        remedy = f"Create it: kubectl create namespace {namespace}"
        raise NotFound.of(f"the namespace {namespace} is missing", problem.measured, remedy) from error


def _content(thing: Json) -> Json:
    """What users write of an object: a controller may change its status at this moment."""
    metadata = {key: value for key, value in thing.get("metadata", {}).items() if key not in KEPT_BY_SERVER}
    return {**thing, "metadata": metadata, "status": None}
