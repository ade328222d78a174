"""Finds the credentials that sign our own S3 requests: configured keys, or ambient ones.

Ambient ones come from awscrt, Amazon's own library, imported at the first use. It reads the environment of
the process, but a store's configuration may come from a Secret, which obstore follows: `credentials_provider`
returns a provider only if both find the same credentials.
"""

from __future__ import annotations

import importlib
import os
from functools import cached_property
from typing import Any

from podferry.contract.errors import FerryError
from podferry.storage.credentials.ambient import AMBIENT_VARIABLES
from podferry.storage.credentials.profile_error import no_credentials
from podferry.storage.credentials.sources import AwsSource, aws_source, config_from_environment
from podferry.storage.credentials.token_file import stripped_token_file
from podferry.storage.errors.translate import store_error
from podferry.storage.network.settings import DIRECT
from podferry.storage.s3.endpoint import S3Access
from podferry.storage.s3.sigv4 import S3Credentials

CRT_VARIABLES = {
    AwsSource.WEB_IDENTITY: ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME"),
    AwsSource.CONTAINER: tuple(AMBIENT_VARIABLES[AwsSource.CONTAINER]),
    AwsSource.METADATA: ("AWS_PROFILE",),
}
"""The variables that awscrt reads from the environment of the process, by the source of the credentials."""


class S3CredentialsProvider:
    """Loads the credentials of one store."""

    def __init__(self, access: S3Access) -> None:
        self._access = access
        # Without these variables, awscrt asks the metadata service, which no machine outside of a cloud has.
        self._has_role = access.source in (AwsSource.WEB_IDENTITY, AwsSource.CONTAINER)

    def load(self) -> S3Credentials | None:
        """The credentials to sign with now, or None for anonymous access. Blocks.

        Ambient ones are cached by awscrt, which asks their service for new ones shortly before they expire.

        Raises:
            CredentialsMissing: None were found.
            Unavailable: The service of a role gives none now: it fails, or the role was granted a moment ago.
        """
        if self._access.source is AwsSource.ANONYMOUS:
            return None
        if self._access.source is AwsSource.KEYS:
            return self._access.credentials()
        try:
            found = self._ambient.get_credentials().result()
        except importlib.import_module("awscrt.exceptions").AwsCrtError as error:
            raise self._none(str(error.name)) from error
        self._has_role = True
        return S3Credentials(found.access_key_id, found.secret_access_key, found.session_token)

    def _none(self, evidence: str) -> FerryError:
        location = self._access.location
        if self._has_role:
            return store_error("no role", location, evidence=evidence)
        return no_credentials(location, self._access.variables, evidence)

    @cached_property
    def _ambient(self) -> Any:
        return importlib.import_module("awscrt.auth").AwsCredentialsProvider.new_default_chain()


def credentials_provider(access: S3Access) -> S3CredentialsProvider | None:
    """The provider of the credentials that obstore uses, or None if awscrt would find other ones."""
    configured = access.source in (AwsSource.ANONYMOUS, AwsSource.KEYS)
    return S3CredentialsProvider(access) if configured or _crt_finds_the_same(access) else None


def _crt_finds_the_same(access: S3Access) -> bool:
    if access.source is AwsSource.WEB_IDENTITY and access.network != DIRECT:
        return False  # awscrt reaches the token service with the process's own CA bundle and proxy only
    if stripped_token_file(access.variables.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "")):
        return False  # awscrt refuses it
    read = CRT_VARIABLES[access.source]
    if any(name in access.variables for name in AMBIENT_VARIABLES[access.source] if name not in read):
        return False
    same = all(access.variables.get(name) == (os.environ.get(name) or None) for name in read)
    return same and aws_source(config_from_environment(os.environ).credentials) is access.source
