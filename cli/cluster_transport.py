"""Two ways to send requests to an API server: as a kubeconfig says, and as the account of this pod."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from podferry.contract.errors import InvalidSpec
from podferry.webhook.cluster.kube import SERVICE_ACCOUNT_DIR, in_cluster_url

CONNECT_SECONDS, READ_SECONDS = 5, 30
"""To connect, and until the next byte of an answer."""
CONNECT_RETRIES = 3
MAX_REFUSAL_BYTES = 64 * 1024
Transport = Callable[[str, str, Mapping[str, str], Mapping[str, str], Any], bytes]
"""Takes method, path, query, header fields and a body for JSON. Returns the body of the answer.

Raises `FailedRequest` for any answer but a success, and `OSError` without an answer.
"""


class FailedRequest(Exception):
    """An answer that is no success.

    Attributes:
        status: Of HTTP.
        body: What it says, or the begin of that.
    """

    def __init__(self, status: int, reason: str, body: bytes = b"") -> None:
        super().__init__(f"{status} {reason}")
        self.status, self.body = status, body


def own_cluster_transport(
    account: Path = SERVICE_ACCOUNT_DIR, environ: Mapping[str, str] = os.environ
) -> Transport | None:
    """The pod's cluster, with the token in `account`, which the kubelet renews; None if this is no such pod.

    As for kubectl, `KUBECONFIG` has precedence. Needs no package: the image of the agent has none for it.
    """
    if "KUBECONFIG" in environ or not (account / "token").exists():
        return None
    url = in_cluster_url(environ, "Give --kubeconfig")
    return token_transport(url, account / "token", ssl.create_default_context(cafile=account / "ca.crt"))


def token_transport(url: str, token_file: Path, tls: ssl.SSLContext | None = None) -> Transport:
    """The API server at a URL, with the token that the file has at each request; never by a proxy."""
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=tls))

    def send(
        method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: Any
    ) -> bytes:
        token = token_file.read_text().strip()
        data = None if body is None else json.dumps(body).encode()
        fields = {"Authorization": f"Bearer {token}", **headers}
        whole = f"{url}{path}?{urlencode(query)}" if query else f"{url}{path}"
        request = Request(whole, data, fields, method=method)  # noqa: S310 - no URL of a user
        try:
            with opener.open(request, timeout=READ_SECONDS) as response:
                answer: bytes = response.read()
                return answer
        except HTTPError as error:
            with error:
                said = error.read(MAX_REFUSAL_BYTES)
            raise FailedRequest(error.code, str(error.reason), said) from error

    return send


def kubeconfig_transport(kubeconfig: str | None, context: str | None) -> Transport:
    """The cluster of a kubeconfig. Raises `InvalidSpec` for one that cannot be used."""
    from kubernetes import config  # noqa: PLC0415 - only few verbs need it, and it loads much
    from kubernetes.client import ApiException, Configuration  # noqa: PLC0415
    from urllib3 import Retry  # noqa: PLC0415
    from urllib3.exceptions import HTTPError as ConnectionFailed  # noqa: PLC0415

    try:
        settings = Configuration()
        settings.retries = Retry(CONNECT_RETRIES, read=0)  # what hangs would hang each time
        api = config.new_client_from_config(kubeconfig, context, client_configuration=settings)
    except config.ConfigException as error:
        remedy = "Give --kubeconfig and --context"
        raise InvalidSpec.of("there is no usable kubeconfig", str(error), remedy) from error

    def send(
        method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: Any
    ) -> bytes:
        try:
            response = api.call_api(
                path,
                method,
                query_params=list(query.items()),
                header_params=dict(headers),
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=(CONNECT_SECONDS, READ_SECONDS),
                _return_http_data_only=True,
            )
        except ApiException as error:
            said = error.body or b""
            body = said if isinstance(said, bytes) else str(said).encode()
            raise FailedRequest(error.status, error.reason, body[:MAX_REFUSAL_BYTES]) from error
        except ConnectionFailed as error:
            raise ConnectionError(str(error)) from error
        data: bytes = response.data
        return data

    return send
