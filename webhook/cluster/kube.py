"""A client for the few API server calls of the webhook, from within the cluster.

The service account's token is read for every request, since the kubelet rotates it.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import aiohttp
import msgspec

from podferry.contract.errors import AccessDenied, FerryError, InvalidSpec, NotFound, Unavailable

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=3.0)
"""Less than the timeout of an admission request."""
PAGE_ITEMS = 50
"""Of a list: each of them may have annotations of 256 KiB."""
CONFLICT = 409
ADMISSION_API = "/apis/admissionregistration.k8s.io/v1"
MUTATING = "mutatingwebhookconfigurations"
JSON_PATCH = "application/json-patch+json"
NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
USER_AGENT = "podferry-webhook"
"""Also the manager of the fields that it writes, in their `managedFields`."""


class MutatingWebhooks(msgspec.Struct, frozen=True):
    """The entries of a MutatingWebhookConfiguration, and its resourceVersion."""

    version: str
    webhooks: list[dict[str, Any]]


class Cluster(Protocol):
    """The cluster operations of the webhook. `KubeClient` implements them with the API server.

    All of them raise `NotFound`, `AccessDenied` or `Unavailable`.
    """

    @property
    def namespace(self) -> str:
        """The webhook's own."""

    async def secret(self, name: str) -> dict[str, Any]:
        """A Secret of the webhook's own namespace."""

    async def replace_secret(self, secret: Mapping[str, Any]) -> bool:
        """Replace a Secret; False if it has changed since it was read."""

    async def config_map(self, name: str) -> dict[str, Any]:
        """A ConfigMap of the webhook's own namespace."""

    async def replace_config_map(self, config_map: Mapping[str, Any]) -> bool:
        """Replace a ConfigMap; False if it has changed since it was read."""

    async def trust(self, kind: str, name: str, bundle: str) -> bool:
        """Make a webhook configuration trust a CA bundle (PEM in base64); False if it already does.

        `kind` is `mutatingwebhookconfigurations` or `validatingwebhookconfigurations`.
        """

    async def mutating_webhooks(self, name: str) -> MutatingWebhooks:
        """The entries of a MutatingWebhookConfiguration."""

    async def replace_mutating_webhooks(
        self, name: str, version: str, webhooks: Sequence[Mapping[str, Any]]
    ) -> bool:
        """Replace its entries; False if it has changed since it had this version."""

    async def namespace_labels(self, name: str) -> dict[str, str]:
        """A namespace's labels."""

    def labelled_services(self, label: str, namespace: str = "") -> AsyncIterator[dict[str, Any]]:
        """The Services that have a label, of a namespace or of all; read page by page."""

    def labelled_volumes(self, label: str) -> AsyncIterator[dict[str, Any]]:
        """The PersistentVolumes that have a label, read page by page."""


class KubeClient:
    """Calls the API server as the pod's service account.

    The caller closes the session, which trusts the cluster's CA. `url` is `https://host:port`; the directory
    `account` has the token and the namespace.
    """

    def __init__(self, session: aiohttp.ClientSession, url: str, account: Path = SERVICE_ACCOUNT_DIR) -> None:
        self._session, self._url, self._account = session, url, account
        self._namespace = (account / "namespace").read_text().strip()

    @property
    def namespace(self) -> str:
        """See `Cluster`."""
        return self._namespace

    async def secret(self, name: str) -> dict[str, Any]:
        """See `Cluster`."""
        return await self._own("secrets", name)

    async def replace_secret(self, secret: Mapping[str, Any]) -> bool:
        """See `Cluster`."""
        return bool(await self._own("secrets", secret["metadata"]["name"], secret))

    async def config_map(self, name: str) -> dict[str, Any]:
        """See `Cluster`."""
        return await self._own("configmaps", name)

    async def replace_config_map(self, config_map: Mapping[str, Any]) -> bool:
        """See `Cluster`."""
        return bool(await self._own("configmaps", config_map["metadata"]["name"], config_map))

    async def _own(self, kind: str, name: str, new: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Read or replace an object of the webhook's own namespace."""
        path = f"/api/v1/namespaces/{self.namespace}/{kind}/{name}"
        return await self._request("GET" if new is None else "PUT", path, new)

    async def trust(self, kind: str, name: str, bundle: str) -> bool:
        """See `Cluster`."""
        path = f"{ADMISSION_API}/{kind}/{name}"
        webhooks = (await self._request("GET", path)).get("webhooks", [])
        patch = [
            {"op": "add", "path": f"/webhooks/{at}/clientConfig/caBundle", "value": bundle}
            for at, webhook in enumerate(webhooks)
            if webhook.get("clientConfig", {}).get("caBundle") != bundle
        ]
        if patch:
            await self._request("PATCH", path, patch, JSON_PATCH)
        return bool(patch)

    async def mutating_webhooks(self, name: str) -> MutatingWebhooks:
        """See `Cluster`."""
        found = await self._request("GET", f"{ADMISSION_API}/{MUTATING}/{name}")
        return MutatingWebhooks(found["metadata"]["resourceVersion"], found.get("webhooks") or [])

    async def replace_mutating_webhooks(
        self, name: str, version: str, webhooks: Sequence[Mapping[str, Any]]
    ) -> bool:
        """See `Cluster`."""
        # With a version, the API server answers a patch of anything newer with a conflict.
        patch = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/webhooks", "value": webhooks},
        ]
        return bool(await self._request("PATCH", f"{ADMISSION_API}/{MUTATING}/{name}", patch, JSON_PATCH))

    async def namespace_labels(self, name: str) -> dict[str, str]:
        """See `Cluster`."""
        if not NAMESPACE.fullmatch(name):  # of a review, which may be forged: it must not change the path
            raise NotFound.of("not a name of a namespace", repr(name[:80]))
        found = await self._request("GET", f"/api/v1/namespaces/{name}")
        return found.get("metadata", {}).get("labels") or {}

    async def labelled_services(self, label: str, namespace: str = "") -> AsyncIterator[dict[str, Any]]:
        """See `Cluster`."""
        place = f"namespaces/{namespace}/services" if namespace else "services"
        async for item in self._labelled(place, label):
            yield item

    async def labelled_volumes(self, label: str) -> AsyncIterator[dict[str, Any]]:
        """See `Cluster`."""
        async for item in self._labelled("persistentvolumes", label):
            yield item

    async def _labelled(self, place: str, label: str) -> AsyncIterator[dict[str, Any]]:
        first = f"/api/v1/{place}?labelSelector={quote(label, safe='')}&limit={PAGE_ITEMS}"
        path = first
        while path:
            found = await self._request("GET", path)
            for item in found.get("items") or []:
                yield item
            following = (found.get("metadata") or {}).get("continue")
            path = f"{first}&continue={quote(following, safe='')}" if following else ""

    async def endpoint_slices(self, service: str) -> list[dict[str, Any]]:
        """The EndpointSlices of a Service of the pod's own namespace. Needs `list` on `endpointslices`."""
        selector = quote(f"kubernetes.io/service-name={service}", safe="")
        path = (
            f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices?labelSelector={selector}"
        )
        return (await self._request("GET", path)).get("items") or []

    async def replicas(self, name: str) -> int:
        """How many pods a StatefulSet of this namespace is to have. Needs `get` on it."""
        found = await self._request("GET", f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets/{name}")
        return int((found.get("spec") or {}).get("replicas", 1))

    async def review_token(self, token: str, audience: str) -> dict[str, Any]:
        """The status of a TokenReview. Needs `create` on `tokenreviews`."""
        spec = {"token": token, "audiences": [audience]}
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        found = await self._request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        return found.get("status") or {}

    async def _request(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> dict[str, Any]:
        """The response's document, or an empty one for a conflict."""
        token = (self._account / "token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        data = None if body is None else msgspec.json.encode(body)
        try:
            async with self._session.request(
                method, self._url + path, data=data, headers=headers, timeout=REQUEST_TIMEOUT
            ) as response:
                text = await response.read()
                if response.status == CONFLICT:
                    return {}
                if response.status >= 300:
                    raise _error(f"{method} {path}", response.status, text)
                document: dict[str, Any] = msgspec.json.decode(text)
                return document
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            what = f"the API server does not respond to {method} {path}"
            raise Unavailable.of(what, str(error) or type(error).__name__) from error


def in_cluster_url(
    environ: Mapping[str, str] = os.environ,
    remedy: str = "Run it in a cluster, or pass --certificate and --key",
) -> str:
    """The API server's URL, from every pod's environment. Raises `InvalidSpec` if this is not a pod."""
    host, port = (environ.get(f"KUBERNETES_SERVICE_{name}") for name in ("HOST", "PORT"))
    if not host or not port:
        raise InvalidSpec.of("KUBERNETES_SERVICE_HOST is not set: this is not a pod", remedy=remedy)
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def cluster_session(account: Path = SERVICE_ACCOUNT_DIR) -> aiohttp.ClientSession:
    """A session that trusts the cluster's CA."""
    context = ssl.create_default_context(cafile=account / "ca.crt")
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context), headers={"User-Agent": USER_AGENT}
    )


def _error(request: str, status: int, body: bytes) -> FerryError:
    kind = {404: NotFound, 401: AccessDenied, 403: AccessDenied}.get(status, Unavailable)
    reason = body.decode(errors="replace")[:300]
    return kind.of(
        f"the API server refuses {request}", f"{status}: {reason}", "Check the RBAC of its account"
    )
