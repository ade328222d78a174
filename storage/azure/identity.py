"""Tokens for identities: a service principal, AKS workload identity, the managed identity of a machine.

Sources: "OAuth 2.0 client credentials flow" and "How to use managed identities on an Azure VM to acquire an
access token", Microsoft Learn.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlencode

import msgspec

from podferry.storage.azure.credentials import (
    AzureCredential,
    AzureSource,
    azure_source,
)
from podferry.storage.errors.translate import StoreLocation, store_error
from podferry.storage.network.settings import Network
from podferry.storage.network.tls import tls_context
from podferry.storage.timeouts_and_limits import Limits

RESOURCE = "https://storage.azure.com/"
AUTHORITY = "https://login.microsoftonline.com"
METADATA_ENDPOINT = "http://169.254.169.254/metadata/identity/oauth2/token"
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
DEFAULT_SECONDS = 3600
"""Of a token whose service does not say how long it is valid."""


class _Answer(msgspec.Struct):
    """A token's service says so; numbers may come as text."""

    access_token: str = ""
    expires_in: int | str = DEFAULT_SECONDS
    error: str = ""


class TokenService:
    """Requests the tokens of one store."""

    def __init__(self, location: StoreLocation, network: Network, limits: Limits) -> None:
        self._location, self._network, self._limits = location, network, limits

    def request(self, variables: Mapping[str, str]) -> AzureCredential:
        """A token for the identity that the variables name. Blocks.

        Raises:
            Unavailable: The service does not respond, or gives none: a role may just have been granted.
        """
        request = _token_request(variables)
        managed = azure_source(variables) is AzureSource.MANAGED_IDENTITY
        seconds = self._limits.metadata_seconds if managed else self._limits.connect_seconds
        try:
            with self._opener(request, direct=managed).open(request, timeout=seconds) as response:
                answer = msgspec.json.decode(response.read(), type=_Answer, strict=False)
        except urllib.error.HTTPError as error:
            self._refuse("no role", request, f"HTTP {error.code} {_error_of(error)}".strip(), error)
        except (OSError, msgspec.MsgspecError) as error:
            kind = "credentials" if managed else "role"
            self._refuse(kind, request, str(getattr(error, "reason", "") or type(error).__name__), error)
        if not answer.access_token:
            self._refuse("no role", request, answer.error or "no access_token", None)
        return AzureCredential(
            AzureSource.TOKEN, answer.access_token, time.time() + float(answer.expires_in or DEFAULT_SECONDS)
        )

    def _refuse(
        self, kind: str, request: urllib.request.Request, said: str, cause: Exception | None
    ) -> NoReturn:
        raise store_error(kind, self._location, evidence=f"{request.host}: {said}") from cause

    def _opener(self, request: urllib.request.Request, *, direct: bool) -> urllib.request.OpenerDirector:
        proxy = None if direct else self._network.proxies.proxy_for(request.full_url)
        proxies = {} if proxy is None else {request.type: proxy.url}
        https = urllib.request.HTTPSHandler(context=tls_context(self._network.ca.pem))
        return urllib.request.build_opener(urllib.request.ProxyHandler(proxies), https)


def _error_of(error: urllib.error.HTTPError) -> str:
    """The code in the body of a refusal, such as `invalid_client`; nothing else of it is shown."""
    try:
        return msgspec.json.decode(error.read(), type=_Answer, strict=False).error[:80]
    except (OSError, msgspec.MsgspecError):
        return ""


def _token_request(variables: Mapping[str, str]) -> urllib.request.Request:
    source = azure_source(variables)
    if source is AzureSource.MANAGED_IDENTITY:
        query = {"api-version": "2019-08-01", "resource": RESOURCE}
        if variables.get("AZURE_CLIENT_ID"):
            query["client_id"] = variables["AZURE_CLIENT_ID"]
        url = f"{variables.get('AZURE_MSI_ENDPOINT') or METADATA_ENDPOINT}?{urlencode(query)}"
        return urllib.request.Request(url, headers={"Metadata": "true"})  # noqa: S310 - configured
    form = {
        "grant_type": "client_credentials",
        "client_id": variables["AZURE_CLIENT_ID"],
        "scope": f"{RESOURCE}.default",
    }
    if source is AzureSource.WORKLOAD_IDENTITY:
        assertion = Path(variables["AZURE_FEDERATED_TOKEN_FILE"]).read_text(encoding="utf-8").strip()
        form |= {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}
    else:
        form["client_secret"] = variables["AZURE_CLIENT_SECRET"]
    authority = (variables.get("AZURE_AUTHORITY_HOST") or AUTHORITY).rstrip("/")
    url = f"{authority}/{variables['AZURE_TENANT_ID']}/oauth2/v2.0/token"
    return urllib.request.Request(url, urlencode(form).encode())  # noqa: S310 - configured
