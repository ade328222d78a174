"""Sends the Azure requests that obstore has no call for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import formatdate
from urllib.parse import quote, urlsplit

from podferry.storage.azure.credentials import AzureSource, decoded_key
from podferry.storage.azure.endpoint import API_VERSION, AzureAccess, credentials_of
from podferry.storage.azure.response import checked
from podferry.storage.azure.shared_key import authorization
from podferry.storage.http.store_client import StoreClient, StoreRequest, StoreResponse
from podferry.storage.timeouts_and_limits import Limits


class AzureClient(StoreClient):
    """A client of one container; see `StoreClient`."""

    def __init__(self, access: AzureAccess, limits: Limits) -> None:
        super().__init__(access.container_url, access.location, access.network, limits, None)
        self._account, self._credentials = access.account, credentials_of(access, limits)

    def _checked(self, response: StoreResponse) -> StoreResponse:
        return checked(response)

    def _encoded_query(self, query: Mapping[str, str]) -> str:
        return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items())

    def _signed(self, request: StoreRequest, url: str) -> tuple[str, Mapping[str, str]]:
        credential = self._credentials.load()
        date = formatdate(time.time(), usegmt=True)
        headers = {"x-ms-version": API_VERSION, "x-ms-date": date, **request.headers}
        if credential is None:
            return url, headers
        if credential.source is AzureSource.SAS:
            return f"{url}{'&' if request.query else '?'}{credential.value.removeprefix('?')}", headers
        if credential.source is AzureSource.TOKEN:
            return url, {**headers, "Authorization": f"Bearer {credential.value}"}
        signed = {**headers, "Content-Length": str(len(request.body))} if request.body else headers
        key, path = decoded_key(credential.value), urlsplit(url).path
        value = authorization(self._account, key, request.method, path, request.query, signed)
        return url, {**headers, "Authorization": value}
