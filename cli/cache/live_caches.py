"""Reads the caches of a live cluster: their objects, and what their holders say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import msgspec

from podferry.cache.report.cache_report import CacheReport, HolderReport, cache_report, source_of
from podferry.cache.report.event_problem import event_problem
from podferry.cache.report.pod_problem import PodProblem, pod_problem
from podferry.cli.live_cluster import Json, LiveCluster, scope
from podferry.contract.cache_api import (
    AUDIENCE,
    CACHE_LABEL,
    REFRESH_PATH,
    STATUS_PATH,
    HolderStatus,
)
from podferry.contract.errors import AccessDenied, FerryError, NotFound, Refused
from podferry.contract.quantity import count_of
from podferry.sidecar.runtime.messages import print_message

TOKEN_SECONDS = 600
"""The least that Kubernetes allows."""
SHOWN_READERS = 5
ASKED_AT_ONCE = 16
_STATUS = msgspec.json.Decoder(HolderStatus)
"""Made before there are threads. At the first use of a class, msgspec 0.22 collects its fields, and a second
thread that decodes it meanwhile ends the process: segmentation fault."""


class LiveCaches:
    """The caches of a cluster."""

    def __init__(self, cluster: LiveCluster) -> None:
        self._cluster = cluster

    def reports(self, namespace: str | None, name: str | None) -> list[CacheReport]:
        """The caches of a namespace, or of all, perhaps only one of a name."""
        return [self._report(service) for service in self._services(namespace, name)]

    def report(self, namespace: str, name: str) -> CacheReport:
        """The cache of this name; raises `NotFound` if there is none."""
        found = self.reports(namespace, name)
        if not found:
            raise no_cache(namespace, name)
        return found[0]

    def source(self, namespace: str, name: str) -> str:
        """The dataset of a cache, as it was created; raises `NotFound` if there is no such cache."""
        services = self._services(namespace, name)
        if not services:
            raise no_cache(namespace, name)
        return source_of(services[0])

    def refresh(self, report: CacheReport) -> None:
        """Have the holders that serve list the source again; their status says when they are done."""
        serving = [one for one in report.holders if one.status is not None and one.status.complete]
        token = self._token(report.namespace, f"podferry-cache-{report.name}") if serving else ""
        for holder in serving:
            for uri in holder.status.complete if holder.status is not None else ():
                place = report.namespace, holder.pod, REFRESH_PATH
                self._cluster.ask_holder(*place, token, "POST", {"uri": uri})

    def _services(self, namespace: str | None, name: str | None) -> list[Json]:
        where = f"/namespaces/{namespace}" if namespace else ""
        selector = f"{CACHE_LABEL}={name}" if name else CACHE_LABEL
        action = f"list Services in {scope(namespace)}"
        found: list[Json] = self._cluster.get(f"/api/v1{where}/services", action, labelSelector=selector)[
            "items"
        ]
        return found

    def _report(self, service: Json) -> CacheReport:
        metadata = service["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        pods = self._pods(namespace, metadata["labels"][CACHE_LABEL])
        path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/{name}"
        try:
            workload = self._cluster.get(path, f"get StatefulSets in {scope(namespace)}")
        except NotFound:
            workload = {}
        holders = self._holders(namespace, name, pods) if pods else ()
        created = datetime.fromisoformat(metadata["creationTimestamp"]).timestamp()
        report = cache_report(service, workload, holders, created)
        missing = self._event_problem(namespace, workload) if len(pods) < report.wanted else None
        return report if missing is None else msgspec.structs.replace(report, problem=missing.text)

    def _pods(self, namespace: str, name: str) -> Sequence[Json]:
        """Those that are not being deleted: what these have is lost."""
        path, action = f"/api/v1/namespaces/{namespace}/pods", f"list pods in {scope(namespace)}"
        found = self._cluster.get(path, action, labelSelector=f"{CACHE_LABEL}={name}")["items"]
        return [one for one in found if "deletionTimestamp" not in one["metadata"]]

    def _holders(self, namespace: str, account: str, pods: Sequence[Json]) -> tuple[HolderReport, ...]:
        try:
            token = self._token(namespace, account)
        except NotFound:
            what = f"the ServiceAccount {account} of the holders is missing. Create the cache again"
            return tuple(HolderReport(*_place(pod), None, what, has_failed=True) for pod in pods)
        with ThreadPoolExecutor(ASKED_AT_ONCE) as threads:  # one that hangs must not delay the others
            return tuple(threads.map(lambda pod: self._holder(namespace, pod, token), pods))

    def _token(self, namespace: str, account: str) -> str:
        """A token of the holders' own account, for them alone."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        spec = {"audiences": [AUDIENCE], "expirationSeconds": TOKEN_SECONDS}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        action = f"create tokens of the ServiceAccount {account} in {scope(namespace)}"
        return str(json.loads(self._cluster.request("POST", path, action, body=body))["status"]["token"])

    def _holder(self, namespace: str, pod: Json, token: str) -> HolderReport:
        name, node = _place(pod)
        try:
            data = self._cluster.ask_holder(namespace, name, STATUS_PATH, token)
            return HolderReport(name, node, _STATUS.decode(data))
        except AccessDenied:  # whether pods read from it is not known: no verb may continue
            raise
        except (FerryError, msgspec.MsgspecError) as error:
            found = pod_problem(pod)
            if found is not None and not found.has_failed:  # its status does not say what it waits for
                found = self._event_problem(namespace, pod) or found
            found = found or PodProblem(str(error), has_failed=False)
            text = f"{name} does not respond: {found.text}"
            return HolderReport(name, node, None, text, found.has_failed, found.refused)

    def _event_problem(self, namespace: str, thing: Json) -> PodProblem | None:
        """What the newest event of an object says is wrong; None for who may not list events."""
        uid, path = thing["metadata"].get("uid"), f"/api/v1/namespaces/{namespace}/events"
        action = f"list events in {scope(namespace)}"
        try:
            found = self._cluster.get(path, action, fieldSelector=f"involvedObject.uid={uid}")["items"]
        except FerryError:  # a better reason is all that is missing
            return None
        return event_problem(found)


def _place(pod: Json) -> tuple[str, str]:
    """The name of a pod, and its node."""
    return pod["metadata"]["name"], pod["spec"].get("nodeName") or ""


def no_cache(namespace: str | None, name: str | None) -> NotFound:
    """The error that there is none."""
    where = f"the namespace {namespace}" if namespace else "the cluster"
    remedy = "Create one with podferry cache create"
    return NotFound.of(f"there is no cache{f' {name}' if name else ''} in {where}", "", remedy)


def few_of(pods: Sequence[str]) -> str:
    """The first ones of many pods, for a message."""
    return ", ".join(pods[:SHOWN_READERS]) + (", …" if len(pods) > SHOWN_READERS else "")


def refuse_if_read(report: CacheReport) -> None:
    """Raise `Refused` while pods read from a cache; holders that do not respond are named."""
    for problem in dict.fromkeys(one.problem for one in report.holders if one.problem):
        print_message(problem, "yellow")
    readers = report.readers
    if readers:
        shown = few_of(readers)
        what = f"the cache is in use by {count_of(len(readers), 'pod')}"
        raise Refused.of(
            what, shown, "Wait until they have started, and those that share it have ended, or give --force"
        )
