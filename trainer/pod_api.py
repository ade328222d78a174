"""Reads pods from the API server as this pod's service account.

It blocks, so that it also works in a notebook, whose event loop runs already.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from podferry.contract.errors import AccessDenied, FerryError, InvalidSpec, NotFound, Unavailable
from podferry.webhook.cluster.kube import SERVICE_ACCOUNT_DIR, in_cluster_url

TIMEOUT_SECONDS = 10.0
MAX_REASON = 300
"""Characters of an error's body."""


@dataclass(frozen=True, slots=True)
class PodApi:
    """The pods of one namespace.

    All methods raise `AccessDenied`, which names the missing right, `NotFound` or `Unavailable`.

    Attributes:
        url: `https://host:port` of the API server.
        account: Directory with the service account's token, namespace and CA.
        timeout: Seconds for one response.
    """

    url: str
    account: Path = SERVICE_ACCOUNT_DIR
    timeout: float = TIMEOUT_SECONDS

    @property
    def namespace(self) -> str:
        """The pod's own."""
        return (self.account / "namespace").read_text().strip()

    def pod(self, name: str) -> dict[str, Any]:
        """One pod."""
        return self._document(f"pods/{quote(name)}", {}, "get pods")

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """The pods that a label selector finds."""
        found: list[dict[str, Any]] = self._document("pods", {"labelSelector": selector}, "list pods")[
            "items"
        ]
        return found

    def warnings(self) -> list[dict[str, Any]]:
        """The events of the type Warning."""
        query = {"fieldSelector": "type=Warning"}
        found: list[dict[str, Any]] = self._document("events", query, "list events")["items"]
        return found

    def log(self, pod: str, container: str, lines: int) -> str:
        """The last lines of a container's log."""
        query = {"container": container, "tailLines": str(lines)}
        return self._get(f"pods/{quote(pod)}/log", query, "get pods/log").decode(errors="replace")

    def _document(self, path: str, query: Mapping[str, str], right: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._get(path, query, right))
        return found

    def _get(self, path: str, query: Mapping[str, str], right: str) -> bytes:
        """The response's body; `right` is what the request needs, as verb and resource."""
        url = f"{self.url}/api/v1/namespaces/{self.namespace}/{path}?{urlencode(query)}"
        token = (self.account / "token").read_text().strip()
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - https
        authority = self.account / "ca.crt"
        context = ssl.create_default_context(cafile=authority) if authority.exists() else None
        try:
            with urllib.request.urlopen(request, timeout=self.timeout, context=context) as response:  # noqa: S310
                body: bytes = response.read()
                return body
        except urllib.error.HTTPError as error:
            raise _refusal(error, right, self.namespace) from error
        except OSError as error:
            raise Unavailable.of(f"the API server does not respond to {right}", str(error)) from error


def pod_api(
    environ: Mapping[str, str], account: Path = SERVICE_ACCOUNT_DIR, timeout: float = TIMEOUT_SECONDS
) -> PodApi | None:
    """The API of this pod; None outside a pod, and in one without a service account's token."""
    if not (account / "token").exists():
        return None
    try:
        return PodApi(in_cluster_url(environ), account, timeout)
    except InvalidSpec:
        return None


def _refusal(error: urllib.error.HTTPError, right: str, namespace: str) -> FerryError:
    reason = f"{error.code}: {error.read().decode(errors='replace')[:MAX_REASON]}"
    if error.code in {401, 403}:
        remedy = f"Allow the pod's service account to {right} in the namespace {namespace}"
        return AccessDenied.of(f"the pod's service account may not {right}", reason, remedy)
    kind = NotFound if error.code == 404 else Unavailable
    return kind.of(f"the API server refuses {right}", reason)
