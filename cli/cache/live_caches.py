"""Reads the caches of a live cluster, by kubeconfig: their objects, and what their holders say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from podferry.cache.report.cache_report import CacheReport, HolderReport, cache_report
from podferry.contract.cache_api import AUDIENCE, CACHE_LABEL, PORT, STATUS_PATH, TOKEN_HEADER, HolderStatus
from podferry.contract.errors import AccessDenied, FerryError, InvalidSpec, NotFound, Unavailable

TIMEOUT = (5, 10)
"""Seconds to connect and to read: a holder responds at once, or not."""
TOKEN_SECONDS = 600
"""The least that Kubernetes allows."""
Json = dict[str, Any]


class LiveCaches:
    """The caches of a cluster.

    Args:
        kubeconfig, context: None for the defaults.

    Raises:
        InvalidSpec: The kubeconfig cannot be used.
        ImportError: The package `kubernetes` is not installed.
    """

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        from kubernetes import config  # noqa: PLC0415 - only few verbs need it, and it loads much

        try:
            self._api = config.new_client_from_config(kubeconfig, context)
        except config.ConfigException as error:
            remedy = "Give --kubeconfig and --context"
            raise InvalidSpec.of("there is no usable kubeconfig", str(error), remedy) from error

    def reports(self, namespace: str | None, name: str | None) -> list[CacheReport]:
        """The caches of a namespace, or of all, perhaps only one of a name."""
        where = f"/namespaces/{namespace}" if namespace else ""
        selector = f"{CACHE_LABEL}={name}" if name else CACHE_LABEL
        services = self._get(f"/api/v1{where}/services", labelSelector=selector)["items"]
        return [self._report(service) for service in services]

    def _report(self, service: Json) -> CacheReport:
        metadata = service["metadata"]
        path = f"/namespaces/{metadata['namespace']}"
        selector = f"{CACHE_LABEL}={metadata['labels'][CACHE_LABEL]}"
        pods = self._get(f"/api/v1{path}/pods", labelSelector=selector)["items"]
        try:
            workload = self._get(f"/apis/apps/v1{path}/statefulsets/{metadata['name']}")
        except NotFound:
            workload = {}
        token = self._token(path, metadata["name"]) if pods else ""
        holders = tuple(self._holder(path, pod, token) for pod in pods)
        created = datetime.fromisoformat(metadata["creationTimestamp"]).timestamp()
        return cache_report(service, workload, holders, created)

    def _token(self, path: str, account: str) -> str:
        """A token of the holders' own account, for them alone."""
        spec = {"audiences": [AUDIENCE], "expirationSeconds": TOKEN_SECONDS}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        found = self._request("POST", f"/api/v1{path}/serviceaccounts/{account}/token", body=body)
        return str(json.loads(found)["status"]["token"])

    def _holder(self, path: str, pod: Json, token: str) -> HolderReport:
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName") or ""
        proxy = f"/api/v1{path}/pods/{name}:{PORT}/proxy{STATUS_PATH}"
        try:
            data = self._request("GET", proxy, headers={TOKEN_HEADER: token})
            return HolderReport(name, node, msgspec.json.decode(data, type=HolderStatus))
        except (FerryError, msgspec.MsgspecError) as error:
            return HolderReport(name, node, None, f"{name} does not respond: {error}")

    def _get(self, path: str, **query: str) -> Json:
        document: Json = json.loads(self._request("GET", path, query))
        return document

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> bytes:
        from kubernetes.client import ApiException  # noqa: PLC0415
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            response = self._api.call_api(
                path,
                method,
                query_params=list((query or {}).items()),
                header_params={"Accept": "*/*", "Content-Type": "application/json", **(headers or {})},
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=TIMEOUT,
                _return_http_data_only=True,
            )
        except ApiException as error:
            kind = {403: AccessDenied, 401: AccessDenied, 404: NotFound}.get(error.status, Unavailable)
            remedy = "Use an account that may read Services, pods and StatefulSets, and pods/proxy"
            what = f"the API server refuses {method} {path}"
            raise kind.of(what, f"{error.status} {error.reason}", remedy) from error
        except (HTTPError, OSError) as error:
            remedy = "Check the server in the kubeconfig, and that you reach it"
            raise Unavailable.of("the API server does not respond", str(error), remedy) from error
        data: bytes = response.data
        return data
