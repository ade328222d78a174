"""How to reach an Azure store: endpoint, account, credentials."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.azure.credentials import (
    VALUES,
    AzureCredential,
    AzureCredentialsProvider,
    AzureSource,
    azure_source,
    decoded_key,
    with_connection_string,
)
from podferry.storage.azure.place import AzurePlace, azure_place
from podferry.storage.credentials.endpoints import checked_endpoint, host_label
from podferry.storage.credentials.sources import variable_names
from podferry.storage.errors.translate import StoreLocation, store_error, store_location, unused_keys
from podferry.storage.network.settings import Network
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits

API_VERSION = "2023-11-03"
"""Of Azure's API: the one that obstore uses."""
AZURE_SCHEMES = ("az", "abfs", "abfss", "azure")


class AzureAccess(msgspec.Struct, frozen=True):
    """How to reach an Azure store: obstore's client and our own requests are both made from it.

    Attributes:
        uri: Of the store.
        container: Without the account's host that some URIs name with it.
        endpoint: URL of the account's Blob service.
        account: Of the storage.
        source: Of the credentials.
        variables: The configured credentials by their usual names.
        location: For errors.
        network: Trusted certificates and proxies.
        reload_credentials: Reads them again if they may change.
    """

    uri: Uri
    container: str
    endpoint: str
    account: str
    source: AzureSource
    variables: Mapping[str, str]
    location: StoreLocation
    network: Network
    reload_credentials: Callable[[], Mapping[str, str]] | None = None

    def __repr__(self) -> str:
        return f"AzureAccess({self.location!r}, {self.source.value})"

    @property
    def container_url(self) -> str:
        """URL of the container; a slash and the key follow."""
        return f"{self.endpoint}/{self.container}"


def azure_access(uri: Uri, config: StoreConfig) -> AzureAccess:
    """How to reach the Azure store of a URI. Sends nothing.

    Raises:
        CredentialsMissing: The account or its credentials are missing.
        InvalidSpec: The URI is misspelled, names another account than the credentials, or the endpoint is not
            a URL.
    """
    place = azure_place(uri)
    variables = with_connection_string(config.credentials)
    source = azure_source(variables)
    account = place.account or variables.get("AZURE_STORAGE_ACCOUNT_NAME", "")
    endpoint = checked_endpoint(_endpoint(place, config, variables, account))
    names = variable_names(config.credentials, "AZURE_")
    unused = unused_keys(config.credentials, names, config.reload_credentials)
    location = store_location(uri, endpoint, names, config.network, unused)
    _check_account(uri, place, variables, source)
    if not account:
        raise CredentialsMissing.of(
            f"no storage account is configured for {uri}",
            f"read: {', '.join(location.credentials) or 'nothing'}",
            "Set AZURE_STORAGE_ACCOUNT_NAME, or AZURE_STORAGE_CONNECTION_STRING",
        )
    if source is AzureSource.NONE:
        raise store_error("credentials", location)
    if source is AzureSource.KEY:
        decoded_key(variables[VALUES[source]])
    return AzureAccess(
        uri,
        place.container,
        endpoint,
        account,
        source,
        variables,
        location,
        config.network,
        config.reload_credentials,
    )


def _endpoint(place: AzurePlace, config: StoreConfig, variables: Mapping[str, str], account: str) -> str:
    configured = config.endpoint or variables.get("AZURE_STORAGE_ENDPOINT") or variables.get("AZURE_ENDPOINT")
    if configured or place.endpoint:
        return configured or place.endpoint
    return f"https://{host_label('the account', account or 'ACCOUNT')}.blob.core.windows.net"


def _check_account(uri: Uri, place: AzurePlace, variables: Mapping[str, str], source: AzureSource) -> None:
    """Raise `InvalidSpec` if keys of one account would be sent to another."""
    configured = variables.get("AZURE_STORAGE_ACCOUNT_NAME", "")
    bound = source in (AzureSource.KEY, AzureSource.SAS)
    if place.account and configured and bound and place.account != configured:
        what = f"{uri} is in the storage account {place.account}, and the credentials are of {configured}"
        remedy = f"Give the credentials of {place.account}, or correct the URI"
        raise InvalidSpec.of(what, f"{VALUES[source]}, AZURE_STORAGE_ACCOUNT_NAME={configured}", remedy)


def credentials_of(access: AzureAccess, limits: Limits) -> AzureCredentialsProvider:
    """The provider of a store's credentials."""

    def request(variables: Mapping[str, str]) -> AzureCredential:
        # Imported for identities alone: it takes 10 ms.
        from podferry.storage.azure.identity import TokenService  # noqa: PLC0415

        return TokenService(access.location, access.network, limits).request(variables)

    return AzureCredentialsProvider(access.variables, access.reload_credentials, request)
