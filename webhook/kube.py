"""The few calls to the API server that the webhook needs, from within the cluster.

The service account's token is read for every request: the kubelet replaces it.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import msgspec

from podferry.contract.errors import AccessDenied, FerryError, InvalidSpec, NotFound, Unavailable

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=3.0)
"""Seconds: less than an admission request may take."""
CONFLICT = 409
ADMISSION_API = "/apis/admissionregistration.k8s.io/v1"
JSON_PATCH = "application/json-patch+json"


class Cluster(Protocol):
    """What the webhook needs of a cluster. `KubeClient` asks the API server."""

    async def secret(self, name: str) -> dict[str, Any]:
        """A Secret of the webhook's own namespace.

        Raises:
            NotFound, AccessDenied, Unavailable: There is none to be had.
        """

    async def replace_secret(self, secret: Mapping[str, Any]) -> bool:
        """Write it back; False where somebody else has changed it since it was read.

        Raises:
            NotFound, AccessDenied, Unavailable: It cannot be written.
        """

    async def trust(self, kind: str, name: str, bundle: str) -> bool:
        """Make a webhook configuration trust a bundle; False where it did already.

        Args:
            kind: `mutatingwebhookconfigurations` or `validatingwebhookconfigurations`.
            name: Its name.
            bundle: PEM in base64.

        Raises:
            NotFound, AccessDenied, Unavailable: It cannot be changed.
        """

    async def namespace_labels(self, name: str) -> dict[str, str]:
        """A namespace's labels.

        Raises:
            NotFound, AccessDenied, Unavailable: They cannot be had.
        """


class KubeClient:
    """Asks the API server as the pod's service account."""

    def __init__(self, session: aiohttp.ClientSession, url: str, account: Path = SERVICE_ACCOUNT_DIR) -> None:
        """A client.

        Args:
            session: Trusts the cluster's CA; the caller closes it.
            url: `https://host:port` of the API server.
            account: Where token and namespace are mounted.
        """
        self._session, self._url, self._account = session, url, account
        self.namespace = (account / "namespace").read_text().strip()

    async def secret(self, name: str) -> dict[str, Any]:
        """See `Cluster`."""
        return await self._ask("GET", f"/api/v1/namespaces/{self.namespace}/secrets/{name}")

    async def replace_secret(self, secret: Mapping[str, Any]) -> bool:
        """See `Cluster`."""
        path = f"/api/v1/namespaces/{self.namespace}/secrets/{secret['metadata']['name']}"
        return bool(await self._ask("PUT", path, secret))

    async def trust(self, kind: str, name: str, bundle: str) -> bool:
        """See `Cluster`."""
        path = f"{ADMISSION_API}/{kind}/{name}"
        webhooks = (await self._ask("GET", path)).get("webhooks", [])
        patch = [
            {"op": "add", "path": f"/webhooks/{at}/clientConfig/caBundle", "value": bundle}
            for at, webhook in enumerate(webhooks)
            if webhook.get("clientConfig", {}).get("caBundle") != bundle
        ]
        if patch:
            await self._ask("PATCH", path, patch, JSON_PATCH)
        return bool(patch)

    async def namespace_labels(self, name: str) -> dict[str, str]:
        """See `Cluster`."""
        found = await self._ask("GET", f"/api/v1/namespaces/{name}")
        return found.get("metadata", {}).get("labels") or {}

    async def _ask(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> dict[str, Any]:
        """The document that the API server answers with; an empty one for a conflict."""
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
            what = f"the API server does not answer {method} {path}"
            raise Unavailable.of(what, str(error) or type(error).__name__) from error


def in_cluster_url(environ: Mapping[str, str] = os.environ) -> str:
    """Where the API server is, as Kubernetes tells every pod.

    Raises:
        InvalidSpec: This is no pod.
    """
    host, port = (environ.get(f"KUBERNETES_SERVICE_{name}") for name in ("HOST", "PORT"))
    if not host or not port:
        remedy = "Run it in a cluster, or give --certificate and --key"
        raise InvalidSpec.of("KUBERNETES_SERVICE_HOST is not set: this is no pod", remedy=remedy)
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def cluster_session(account: Path = SERVICE_ACCOUNT_DIR) -> aiohttp.ClientSession:
    """A session that trusts the cluster's CA."""
    context = ssl.create_default_context(cafile=account / "ca.crt")
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))


def _error(request: str, status: int, body: bytes) -> FerryError:
    kind = {404: NotFound, 401: AccessDenied, 403: AccessDenied}.get(status, Unavailable)
    reason = body.decode(errors="replace")[:300]
    return kind.of(f"the API server refuses {request}", f"{status}: {reason}", "Look at the webhook's RBAC")
