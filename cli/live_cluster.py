"""Requests to the API server of a kubeconfig, or of the cluster of this pod. Its errors become podferry's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from podferry.cli.cluster_transport import FailedRequest, kubeconfig_transport, own_cluster_transport
from podferry.contract.cache_api import PORT, TOKEN_HEADER, Refusal
from podferry.contract.errors import AccessDenied, AlreadyExists, InvalidSpec, NotFound, Unavailable

ERRORS = {401: AccessDenied, 403: AccessDenied, 404: NotFound, 409: AlreadyExists, 422: InvalidSpec}
"""By status; others may pass."""
PROXY_VERBS = {"GET": "get", "POST": "create"}
"""What RBAC calls requests that the API server passes on, by method."""
HEADERS = {"Accept": "*/*", "Content-Type": "application/json"}
Json = dict[str, Any]


class _Status(msgspec.Struct):
    """The body of an answer of the API server that is no success."""

    message: str


# Made before there are threads: see `podferry.cli.cache.live_caches`.
_STATUS, _REFUSAL = msgspec.json.Decoder(_Status), msgspec.json.Decoder(Refusal)


class LiveCluster:
    """A cluster.

    Args:
        kubeconfig: Its path; None for `$KUBECONFIG`, in a pod for the pod's account, else the default.
        context: In the kubeconfig; None for the current one.

    Raises:
        InvalidSpec: The kubeconfig cannot be used.
        ImportError: The package `kubernetes`, which reads kubeconfigs, is not installed.
    """

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        own = own_cluster_transport() if kubeconfig is None and context is None else None
        self._send = own or kubeconfig_transport(kubeconfig, context)

    def get(self, path: str, action: str, **query: str) -> Json:
        """The JSON at a path; see `request`. A typed client would drop the fields that it does not know."""
        document: Json = json.loads(self.request("GET", path, action, query))
        return document

    def request(
        self,
        method: str,
        path: str,
        action: str,
        query: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> bytes:
        """The body of an answer.

        Args:
            method: Of HTTP.
            path: At the API server.
            action: What the account must be allowed to do, such as `list Services in the namespace team`.
            query: Of the URL.
            headers: More header fields.
            body: As JSON.

        Raises:
            AccessDenied: The account may not do that.
            NotFound: There is no such object.
            AlreadyExists: There is one already.
            InvalidSpec: The API server does not accept the object.
            Unavailable: The API server does not respond, or has an error.
        """
        try:
            return self._send(method, path, query or {}, {**HEADERS, **(headers or {})}, body)
        except FailedRequest as error:
            kind = ERRORS.get(error.status, Unavailable)
            said = _said(error)
            remedy = _remedy(action, said) if kind is AccessDenied else ""
            raise kind.of(f"cannot {action}", said, remedy) from error
        except OSError as error:
            remedy = "Check the server in the kubeconfig, and that you reach it"
            raise Unavailable.of(f"cannot {action}", str(error), remedy) from error

    def ask_holder(
        self,
        namespace: str,
        pod: str,
        path: str,
        token: str,
        method: str = "GET",
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        """What a holder answers at a path, by way of the API server's proxy.

        Raises:
            AccessDenied: The account may not ask it.
            Unavailable: It does not respond, or refuses: in its own words.
        """
        where = f"/api/v1/namespaces/{namespace}/pods/{pod}:{PORT}/proxy{path}"
        action = f"{PROXY_VERBS[method]} pods/proxy in {scope(namespace)}"
        try:
            return self.request(method, where, action, query, headers={TOKEN_HEADER: token})
        except (AccessDenied, NotFound, Unavailable) as error:
            refusal = _refusal_of_holder(error.__cause__)
            if refusal is None:
                raise
            raise Unavailable(*refusal.problems) from error


def _said(error: FailedRequest) -> str:
    """The API server's own words, such as which field cannot change; else the status."""
    try:
        return " ".join(_STATUS.decode(error.body).message.split())
    except msgspec.MsgspecError:
        return str(error)


def _remedy(action: str, said: str) -> str:
    """What helps against a refusal with 403, which is not always for lack of a right."""
    if "exceeded quota" in said:
        return "Raise the quota of the namespace"
    if "being terminated" in said:
        return "Leave the namespace out, or create it again when it is gone"
    return f"Use an account that may {action}"


def _refusal_of_holder(cause: BaseException | None) -> Refusal | None:
    """The answer of a holder, which the proxy passes on with its status; None if it is not one's."""
    try:
        return _REFUSAL.decode(cause.body) if isinstance(cause, FailedRequest) else None
    except msgspec.MsgspecError:
        return None


def scope(namespace: str | None) -> str:
    """Where a list looks, in words."""
    return f"the namespace {namespace}" if namespace else "all namespaces"
