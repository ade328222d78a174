"""Requests to the API server of a kubeconfig. Its errors become podferry's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from podferry.contract.errors import AccessDenied, InvalidSpec, NotFound, Unavailable

TIMEOUT = (5, 30)
"""Seconds to connect, and until the next byte of an answer."""
ERRORS = {401: AccessDenied, 403: AccessDenied, 404: NotFound}
"""By status; others may pass."""
Json = dict[str, Any]


class LiveCluster:
    """A cluster.

    Args:
        kubeconfig: Its path; None for `$KUBECONFIG` or the default.
        context: In the kubeconfig; None for the current one.

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
            Unavailable: The API server does not respond, or has an error.
        """
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
            kind = ERRORS.get(error.status, Unavailable)
            remedy = f"Use an account that may {action}" if kind is AccessDenied else ""
            raise kind.of(f"cannot {action}", f"{error.status} {error.reason}", remedy) from error
        except (HTTPError, OSError) as error:
            remedy = "Check the server in the kubeconfig, and that you reach it"
            raise Unavailable.of(f"cannot {action}", str(error), remedy) from error
        data: bytes = response.data
        return data


def scope(namespace: str | None) -> str:
    """Where a list looks, in words."""
    return f"the namespace {namespace}" if namespace else "all namespaces"
