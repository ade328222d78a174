"""Requests to the API server, as the step's service account; outside a cluster as the kubeconfig says."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from kubernetes import client, config
from urllib3.exceptions import HTTPError

from podferry.contract.errors import (
    AccessDenied,
    AlreadyExists,
    FerryError,
    InvalidSpec,
    NotFound,
    Problem,
    Refused,
    Unavailable,
)

SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
TIMEOUT = (5, 30)
"""Seconds to connect and to read."""
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
TEMPORARY = frozenset({401, 408, 429, 500, 502, 503, 504})
"""Statuses of an API server that starts or is busy; a token may be refused while it is replaced."""
DENIED_BY_WEBHOOK = "admission webhook"
"""What the message of a webhook's refusal begins with. Source: apiserver `plugin/webhook/errors`."""
RBAC_REMEDY = "Apply deploy/kfp-jobs, with a RoleBinding to the step's service account"
Json = dict[str, Any]


class ApiServer:
    """The requests of a step.

    All of them raise `Unavailable` if a later try may succeed, else `AccessDenied`, `NotFound`,
    `AlreadyExists`, `InvalidSpec`, or `Refused` if an admission webhook denies it.

    Attributes:
        namespace: The step's own.
    """

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self._api, self.namespace = api, namespace

    @classmethod
    def connect(cls) -> Self:
        """In a pod as its service account; else by the kubeconfig. Raises `InvalidSpec` without either."""
        configuration = client.Configuration()
        try:
            if "KUBECONFIG" not in os.environ and SERVICE_ACCOUNT_NAMESPACE.exists():
                config.load_incluster_config(configuration)
                namespace = SERVICE_ACCOUNT_NAMESPACE.read_text().strip()
            else:
                config.load_kube_config(client_configuration=configuration)
                context = config.list_kube_config_contexts()[1]
                namespace = context["context"].get("namespace") or "default"
        except config.ConfigException as error:
            remedy = "Run the step in a cluster, or set KUBECONFIG"
            raise InvalidSpec.of("there is no cluster to run the job in", str(error), remedy) from error
        configuration.retries = False  # the loop retries, and says so
        return cls(client.ApiClient(configuration), namespace)

    def get(self, path: str, **query: Any) -> Json:
        """The JSON document at a path."""
        return self._json("GET", path, query)

    def create(self, path: str, body: Mapping[str, Any], *, dry_run: bool = False) -> Json:
        """Create an object, or only have it checked. A field that its kind does not have is an error."""
        query = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        return self._json("POST", path, query, body)

    def merge(self, path: str, patch: Mapping[str, Any]) -> Json:
        """Merge a patch into an object (RFC 7386)."""
        return self._json("PATCH", path, {}, patch, MERGE_PATCH)

    def delete(self, path: str, uid: str) -> None:
        """Delete an object after what it owns, if it is still the one with this uid.

        Until the last of it is gone the name stays taken: the next object of this name must not find parts of
        the one before.
        """
        body = {"preconditions": {"uid": uid}, "propagationPolicy": "Foreground"}
        self._json("DELETE", path, {}, body)

    def log_tail(self, pod: str, container: str, lines: int) -> str:
        """The last lines of a container's log."""
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/log"
        return self._request("GET", path, {"container": container, "tailLines": lines}).decode(
            errors="replace"
        )

    def _json(self, *request: Any) -> Json:
        document: Json = json.loads(self._request(*request))
        return document

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Mapping[str, Any] | None = None,
        content_type: str = JSON,
    ) -> bytes:
        try:
            response = self._api.call_api(
                path,
                method,
                query_params=list(query.items()),
                header_params={"Accept": "application/json, */*", "Content-Type": content_type},
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=TIMEOUT,
                _return_http_data_only=True,
            )
            data: bytes = response.data
        except client.ApiException as error:
            raise translated(f"{method} {path}", int(error.status or 0), error.body) from error
        except (HTTPError, OSError) as error:
            what = f"the API server does not answer {method} {path}"
            raise Unavailable.of(what, str(error)) from error
        return data


def translated(request: str, status: int, body: Any) -> FerryError:
    """The error for a response that is not a success."""
    message = _message(body)
    what = f"the API server refuses {request}"
    if status in TEMPORARY:
        return Unavailable.of(what, f"{status}: {message}")
    if message.startswith(DENIED_BY_WEBHOOK):
        # Each of podferry's problems is a line.
        return Refused(*(Problem(line) for line in message.splitlines() if line.strip()))
    if status == 403:
        return AccessDenied.of(what, message, RBAC_REMEDY)
    kind = {404: NotFound, 409: AlreadyExists}.get(status, InvalidSpec)
    return kind.of(what, f"{status}: {message}")


def _message(body: Any) -> str:
    """The message of a `Status` object, or the body as it is."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body or "")
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:1000]
