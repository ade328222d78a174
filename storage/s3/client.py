"""Sends the S3 requests that obstore has no call for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from urllib.parse import urlsplit

from podferry.storage.http.store_client import Explain, StoreClient, StoreRequest, StoreResponse
from podferry.storage.s3.credentials import S3CredentialsProvider
from podferry.storage.s3.endpoint import S3Access
from podferry.storage.s3.response import checked
from podferry.storage.s3.sigv4 import UNSIGNED_PAYLOAD, SigV4Signer, canonical_query
from podferry.storage.timeouts_and_limits import Limits


class S3Client(StoreClient):
    """A client of one bucket; see `StoreClient`."""

    def __init__(
        self,
        access: S3Access,
        credentials: S3CredentialsProvider,
        limits: Limits,
        explain: Explain | None = None,
    ) -> None:
        """Prepare a client; without `explain`, errors are translated by themselves alone."""
        super().__init__(access.bucket_url, access.location, access.network, limits, explain)
        self._region = access.region
        self._credentials = credentials
        self._headers = access.request_headers

    def _checked(self, response: StoreResponse) -> StoreResponse:
        return checked(response)

    def _encoded_query(self, query: Mapping[str, str]) -> str:
        return canonical_query(query)

    def _signed(self, request: StoreRequest, url: str) -> tuple[str, Mapping[str, str]]:
        credentials = self._credentials.load()
        sent = {**self._headers, **request.headers}
        if credentials is None:
            return url, sent
        payload = hashlib.sha256(request.body).hexdigest() if request.signed_body else UNSIGNED_PAYLOAD
        parts = urlsplit(url)
        signer = SigV4Signer(credentials, self._region, parts.netloc)
        return url, signer.sign(request.method, parts.path, parts.query, sent, payload)
