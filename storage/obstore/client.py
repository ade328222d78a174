"""Clients of obstore from a URI and its configuration, with nothing left to the environment.

obstore reads the process's environment for whatever it is not told. A pod's data and checkpoints may have
different Secrets, so everything that matters is told: endpoint, region, keys, anonymity.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from obstore.store import AzureStore, S3Store

from podferry.contract.uri import Uri
from podferry.storage.azure.endpoint import AZURE_SCHEMES, azure_access
from podferry.storage.credentials.sources import AwsSource
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.limits import Limits
from podferry.storage.s3.endpoint import S3Access, s3_access
from podferry.storage.store import StoreConfig

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, RetryConfig, S3Config, S3Credential
from podferry.storage.credentials.ambient import AMBIENT_VARIABLES
from podferry.storage.credentials.refresh import REFRESH_SECONDS

METADATA_ENDPOINT = "http://169.254.169.254"
"""Amazon's metadata service: "Instance metadata and user data", EC2 user guide."""


class ObstoreClient(msgspec.Struct, frozen=True):
    """An obstore client and what its errors need.

    Attributes:
        store: obstore's.
        location: For errors.
        metadata: Address of the metadata service that must answer first, empty where none is asked.
    """

    store: S3Store | AzureStore
    location: StoreLocation
    metadata: str = ""


def obstore_client(uri: Uri, config: StoreConfig, limits: Limits) -> ObstoreClient:
    """The client for a URI. Sends nothing.

    Raises:
        CredentialsMissing: There is nothing to sign requests with, and nowhere to get it.
        InvalidWish: The configuration contradicts itself.
    """
    return _azure(uri, config, limits) if uri.scheme in AZURE_SCHEMES else _s3(uri, config, limits)


def _s3(uri: Uri, config: StoreConfig, limits: Limits) -> ObstoreClient:
    access = s3_access(uri, config)
    variables, source = access.variables, access.source
    options: S3Config = {
        "aws_endpoint_url_s3": access.bucket_url if access.virtual_hosted else access.endpoint,
        "region": access.region,
        "virtual_hosted_style_request": access.virtual_hosted,
        "skip_signature": source is AwsSource.ANONYMOUS,
        **_ambient(source, variables),
    }
    store = S3Store(
        uri.bucket,
        config=options,
        client_options=_client_options(limits),
        retry_config=_retries(limits),
        credential_provider=_Keys(access) if source is AwsSource.KEYS else None,
    )
    metadata = (
        variables.get("AWS_METADATA_ENDPOINT", METADATA_ENDPOINT) if source is AwsSource.METADATA else ""
    )
    return ObstoreClient(store, access.location, metadata)


class _Keys:
    """Keys for obstore; in a provider, so that no variable of the environment joins them.

    Attributes:
        refresh_threshold: How long before their end obstore asks again.
    """

    refresh_threshold = timedelta(0)

    def __init__(self, access: S3Access) -> None:
        self._access = access

    def __call__(self) -> S3Credential:
        key, secret, token = self._access.credentials()
        again = datetime.now(UTC) + timedelta(seconds=REFRESH_SECONDS)
        return {
            "access_key_id": key,
            "secret_access_key": secret,
            "token": token,
            "expires_at": None if self._access.reload_credentials is None else again,
        }


def _ambient(source: AwsSource, held: Mapping[str, str]) -> S3Config:
    names = AMBIENT_VARIABLES.get(source, {})
    found = {option: held[name] for name, option in names.items() if name in held}
    return msgspec.convert(found, dict)  # type: ignore[return-value]  # keys come from the table above


def _azure(uri: Uri, config: StoreConfig, limits: Limits) -> ObstoreClient:
    access = azure_access(uri, config)
    options: AzureConfig = msgspec.convert(access.options, dict)  # type: ignore[assignment]  # keys of a table
    store = AzureStore(
        uri.bucket,
        account_name=access.account,
        endpoint=access.endpoint,
        config=options,
        client_options=_client_options(limits),
        retry_config=_retries(limits),
    )
    return ObstoreClient(store, access.location)


def _client_options(limits: Limits) -> ClientConfig:
    return {
        "allow_http": True,
        "connect_timeout": timedelta(seconds=limits.connect_seconds),
        "read_timeout": timedelta(seconds=limits.stall_seconds),
        "timeout": timedelta(seconds=limits.request_seconds),
        "user_agent": "podferry",
    }


def _retries(limits: Limits) -> RetryConfig:
    return {
        "max_retries": limits.retries,
        "retry_timeout": timedelta(seconds=limits.retry_seconds),
        "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5)},
    }
