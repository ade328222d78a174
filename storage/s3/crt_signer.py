"""Signs requests to S3 with Amazon's own library, for what obstore has no call for.

The library is imported at the first signature. It finds keys that are not given by itself, as obstore does:
`signer_for` only lets it where both must find the same ones.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from podferry.contract.errors import CredentialsMissing
from podferry.storage.credentials.ambient import AMBIENT
from podferry.storage.credentials.sources import AwsSource, aws_source, config_from_environment
from podferry.storage.errors.translate import make
from podferry.storage.s3.endpoint import S3Access
from podferry.storage.s3.sigv4 import Keys

UNSIGNED = "UNSIGNED-PAYLOAD"
"""In place of the body's SHA-256: "Authenticating requests: using the Authorization header", Amazon S3."""
OWN = {
    AwsSource.WEB_IDENTITY: ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME"),
    AwsSource.CONTAINER: tuple(AMBIENT[AwsSource.CONTAINER]),
    AwsSource.METADATA: (),
}
"""What Amazon's library reads from the environment of the process, as obstore is told it."""


class CrtSigner:
    """Adds what proves who sends a request."""

    def __init__(self, access: S3Access) -> None:
        self._access = access

    async def sign(self, method: str, url: str, headers: Mapping[str, str], payload: str) -> dict[str, str]:
        """The headers with those that sign them.

        Args:
            method: Of the request.
            url: Where to, encoded as it is sent.
            headers: All that the signature is to cover, without the host.
            payload: SHA-256 of the body in hexadecimal, or `UNSIGNED`.

        Raises:
            CredentialsMissing: There is nothing to sign with.
        """
        if self._access.source is AwsSource.ANONYMOUS:
            return dict(headers)
        # In a thread: the library is loaded at the first time, and may ask a service for the credentials.
        return await asyncio.to_thread(self._sign, method, url, headers, payload)

    def keys(self) -> Keys:
        """What it signs with as of now; asks a service where the last ones are about to end. Blocks.

        Raises:
            CredentialsMissing: There is nothing to sign with.
        """
        with self._told():
            found = self._provider.get_credentials().result()
        return Keys(found.access_key_id, found.secret_access_key, found.session_token)

    def _sign(self, method: str, url: str, headers: Mapping[str, str], payload: str) -> dict[str, str]:
        split = urlsplit(url)
        path = f"{split.path}?{split.query}" if split.query else split.path
        listed = [("Host", split.netloc), *headers.items()]
        request = self._http.HttpRequest(method, path, self._http.HttpHeaders(listed))
        with self._told():
            self._auth.aws_sign_request(request, self._signature(payload)).result()
        return dict(request.headers)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self._errors.AwsCrtError as error:
            missing = make("credentials", self._access.place, evidence=str(error.name))
            raise CredentialsMissing(*missing.problems) from error

    def _signature(self, payload: str) -> Any:
        return self._auth.AwsSigningConfig(
            algorithm=self._auth.AwsSigningAlgorithm.V4,
            signature_type=self._auth.AwsSignatureType.HTTP_REQUEST_HEADERS,
            credentials_provider=self._provider,
            region=self._access.region,
            service="s3",
            use_double_uri_encode=False,
            should_normalize_uri_path=False,
            signed_body_value=payload,
            signed_body_header_type=self._auth.AwsSignedBodyHeaderType.X_AMZ_CONTENT_SHA_256,
        )

    @cached_property
    def _provider(self) -> Any:
        kinds = self._auth.AwsCredentialsProvider
        if self._access.source is not AwsSource.KEYS:
            return kinds.new_default_chain()
        return kinds.new_delegate(lambda: self._auth.AwsCredentials(*self._access.keys()))

    @cached_property
    def _errors(self) -> Any:
        return importlib.import_module("awscrt.exceptions")

    @cached_property
    def _auth(self) -> Any:
        return importlib.import_module("awscrt.auth")

    @cached_property
    def _http(self) -> Any:
        return importlib.import_module("awscrt.http")


def signer_for(access: S3Access) -> CrtSigner | None:
    """What signs as obstore does; None where Amazon's library would find other credentials.

    It looks into the environment of the process, whereas a store's configuration may come from a Secret.
    """
    if access.source in (AwsSource.ANONYMOUS, AwsSource.KEYS) or _finds_the_same(access):
        return CrtSigner(access)
    return None


def _finds_the_same(access: S3Access) -> bool:
    own = OWN[access.source]
    if any(name in access.held for name in AMBIENT[access.source] if name not in own):
        return False
    same = all(access.held.get(name) == (os.environ.get(name) or None) for name in own)
    return same and aws_source(config_from_environment(os.environ).credentials) is access.source
