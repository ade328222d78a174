"""Creates obstore clients from a URI and its configuration.

obstore reads the environment of the process for every option that is not set. A pod's data and checkpoints
may have different Secrets, so endpoint, region, keys and anonymous access are always set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from obstore.store import AzureStore, S3Store

from podferry.contract.uri import Uri
from podferry.storage.azure.credentials import AzureCredential, AzureCredentialsProvider, AzureSource
from podferry.storage.azure.endpoint import AZURE_SCHEMES, azure_access, credentials_of
from podferry.storage.credentials.ambient import AMBIENT_VARIABLES
from podferry.storage.credentials.refresh import REFRESH_SECONDS
from podferry.storage.credentials.sources import AwsSource
from podferry.storage.credentials.token_file import StrippedTokenFile, stripped_token_file
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.network.settings import Network
from podferry.storage.s3.endpoint import S3Access, s3_access
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits

if TYPE_CHECKING:
    from obstore.store import (
        AzureAccessKey,
        AzureBearerToken,
        AzureSASToken,
        ClientConfig,
        RetryConfig,
        S3Config,
        S3Credential,
    )

METADATA_OPTIONS = ("metadata_endpoint", "container_credentials_full_uri")
METADATA_ENDPOINT = "http://169.254.169.254"
"""Amazon's metadata service: "Instance metadata and user data", EC2 user guide."""


class ObstoreClient(msgspec.Struct, frozen=True):
    """An obstore client.

    Attributes:
        store, location: Where it reads and writes.
        load_credentials: Gets those of an Azure store, before each request; it blocks. None for others.
        metadata_endpoint: Of the metadata service that provides its credentials, or empty.
        token_file: A copy of a token file to refresh before each request, or None.
    """

    store: S3Store | AzureStore
    location: StoreLocation
    metadata_endpoint: str = ""
    token_file: StrippedTokenFile | None = None
    load_credentials: Callable[[], object] | None = None


def obstore_client(uri: Uri, config: StoreConfig, limits: Limits) -> ObstoreClient:
    """The client for a URI. Sends nothing.

    Raises:
        CredentialsMissing: There are none, and no service that could provide them.
        InvalidSpec: The configuration contradicts itself.
    """
    return _azure(uri, config, limits) if uri.scheme in AZURE_SCHEMES else _s3(uri, config, limits)


def _s3(uri: Uri, config: StoreConfig, limits: Limits) -> ObstoreClient:
    access = s3_access(uri, config)
    source, variables = access.source, access.variables
    ambient = AMBIENT_VARIABLES.get(source, {})
    found = {option: variables[name] for name, option in ambient.items() if name in variables}
    token_file = stripped_token_file(found.get("container_authorization_token_file", ""))
    if token_file is not None:
        found["container_authorization_token_file"] = token_file.path
    ambient_options: S3Config = msgspec.convert(found, dict)  # type: ignore[assignment]  # keys of a table
    options: S3Config = {
        "aws_endpoint_url_s3": access.bucket_url if access.virtual_hosted else access.endpoint,
        "region": access.region,
        "virtual_hosted_style_request": access.virtual_hosted,
        "request_payer": bool(access.request_headers),
        "skip_signature": source is AwsSource.ANONYMOUS,
        **ambient_options,
    }
    store = S3Store(
        access.bucket,
        config=options,
        client_options=_client_options(limits, access.network, access.bucket_url, _hosts(found)),
        retry_config=_retries(limits),
        credential_provider=_CredentialProvider(access) if source is AwsSource.KEYS else None,
    )
    metadata = variables.get("AWS_METADATA_ENDPOINT", METADATA_ENDPOINT)
    metadata = metadata if source is AwsSource.METADATA else ""
    return ObstoreClient(store, access.location, metadata, token_file)


class _CredentialProvider:
    """Configured keys; a provider keeps obstore from combining them with variables of the environment."""

    refresh_threshold = timedelta(0)  # how long before they expire obstore asks again

    def __init__(self, access: S3Access) -> None:
        self._access = access

    def __call__(self) -> S3Credential:
        credentials = self._access.credentials()
        again = datetime.now(UTC) + timedelta(seconds=REFRESH_SECONDS)
        return {
            "access_key_id": credentials.access_key_id,
            "secret_access_key": credentials.secret_access_key,
            "token": credentials.session_token,
            "expires_at": None if self._access.reload_credentials is None else again,
        }


NO_TOKEN = AzureCredential(AzureSource.TOKEN, "")
"""Of a Secret that has become anonymous, which the store then refuses."""


class _AzureProvider:
    """As above: what obstore would read by itself may be another account's."""

    refresh_threshold = timedelta(0)

    def __init__(self, credentials: AzureCredentialsProvider) -> None:
        self._credentials = credentials

    def __call__(self) -> AzureAccessKey | AzureSASToken | AzureBearerToken:
        found = self._credentials.load() or NO_TOKEN
        lasting = self._credentials.lasting
        expires = None if lasting else datetime.now(UTC) + timedelta(seconds=REFRESH_SECONDS)
        if found.source is AzureSource.KEY:
            return {"access_key": found.value, "expires_at": expires}
        if found.source is AzureSource.SAS:
            return {"sas_token": found.value.removeprefix("?"), "expires_at": expires}
        return {"token": found.value, "expires_at": expires}


def _azure(uri: Uri, config: StoreConfig, limits: Limits) -> ObstoreClient:
    access = azure_access(uri, config)
    credentials = credentials_of(access, limits)
    anonymous = access.source is AzureSource.ANONYMOUS
    store = AzureStore(
        access.container,
        account_name=access.account,
        endpoint=access.endpoint,
        config={"skip_signature": anonymous, "use_emulator": False, "use_fabric_endpoint": False},
        client_options=_client_options(limits, access.network, access.endpoint, ()),
        retry_config=_retries(limits),
        credential_provider=None if anonymous else _AzureProvider(credentials),
    )
    return ObstoreClient(store, access.location, load_credentials=credentials.load)


def _hosts(options: Mapping[str, object]) -> tuple[str, ...]:
    """Hosts of the metadata endpoints among some options: they are never reached through a proxy."""
    return tuple(
        urlsplit(str(url)).hostname or "" for name, url in options.items() if name in METADATA_OPTIONS
    )


def _client_options(limits: Limits, network: Network, url: str, direct: tuple[str, ...]) -> ClientConfig:
    """Options for a store at `url`. The proxies are always set: obstore would read the environment's."""
    options = _bounds(limits)
    if network.ca.pem:
        options["root_certificate"] = network.ca.pem
    proxies = network.proxies
    proxy = proxies.proxy_for(url) or proxies.https or proxies.http
    if proxy is not None:
        options["proxy_url"] = proxy.url
        options["proxy_excludes"] = ",".join(filter(None, (*proxies.excluded_for(url), *direct)))
        if network.ca.pem and proxy.tls:
            options["proxy_ca_certificate"] = network.ca.pem
    return options


def _bounds(limits: Limits) -> ClientConfig:
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
