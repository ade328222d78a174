"""How to reach an Azure store: endpoint, account, credentials."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podferry.contract.errors import CredentialsMissing
from podferry.contract.uri import Uri
from podferry.storage.credentials.endpoints import checked_endpoint
from podferry.storage.credentials.sources import is_true, variable_names
from podferry.storage.errors.translate import StoreLocation, store_error, store_location
from podferry.storage.network.settings import Network
from podferry.storage.store import StoreConfig

AZURE_SCHEMES = ("az", "abfs", "abfss", "azure")


class AzureAccess(msgspec.Struct, frozen=True):
    """How to reach an Azure store: obstore's client and our own requests are both made from it.

    The bucket of `uri` is Azure's container. `options` has the credentials by obstore's names, and
    `skip_signature` for anonymous access.
    """

    uri: Uri
    endpoint: str
    account: str
    options: Mapping[str, str | bool]
    location: StoreLocation
    network: Network

    def __repr__(self) -> str:
        return f"AzureAccess({self.location!r}, options of: {', '.join(sorted(self.options))})"


def azure_access(uri: Uri, config: StoreConfig) -> AzureAccess:
    """How to reach the Azure store of a URI. Sends nothing.

    Raises:
        CredentialsMissing: The account or its credentials are missing.
        InvalidSpec: The endpoint is not a URL.
    """
    variables = {**_connection_string(config.credentials), **config.credentials}
    account = variables.get("AZURE_STORAGE_ACCOUNT_NAME", "")
    configured = config.endpoint or variables.get("AZURE_STORAGE_ENDPOINT") or variables.get("AZURE_ENDPOINT")
    endpoint = checked_endpoint(configured or f"https://{account or 'ACCOUNT'}.blob.core.windows.net")
    names = variable_names(config.credentials, "AZURE_")
    location = store_location(uri, endpoint, names, config.network)
    options = _options(variables)
    if not account:
        raise CredentialsMissing.of(
            f"no storage account is configured for {uri}",
            f"read: {', '.join(location.credentials) or 'nothing'}",
            "Set AZURE_STORAGE_ACCOUNT_NAME, or AZURE_STORAGE_CONNECTION_STRING",
        )
    if not options:
        raise store_error("credentials", location)
    return AzureAccess(uri, endpoint, account, options, location, config.network)


OBSTORE_OPTIONS = {
    "AZURE_STORAGE_ACCOUNT_KEY": "account_key",
    "AZURE_STORAGE_SAS_TOKEN": "sas_key",
    "AZURE_STORAGE_TOKEN": "token",
    "AZURE_CLIENT_ID": "client_id",
    "AZURE_CLIENT_SECRET": "client_secret",
    "AZURE_TENANT_ID": "tenant_id",
    "AZURE_AUTHORITY_HOST": "authority_host",
    "AZURE_FEDERATED_TOKEN_FILE": "federated_token_file",
    "AZURE_MSI_ENDPOINT": "msi_endpoint",
}


def _options(variables: Mapping[str, str]) -> dict[str, str | bool]:
    if is_true(variables.get("AZURE_SKIP_SIGNATURE", "")):
        return {"skip_signature": True}
    return {option: variables[name] for name, option in OBSTORE_OPTIONS.items() if variables.get(name)}


def _connection_string(variables: Mapping[str, str]) -> dict[str, str]:
    names = {
        "AccountName": "AZURE_STORAGE_ACCOUNT_NAME",
        "AccountKey": "AZURE_STORAGE_ACCOUNT_KEY",
        "SharedAccessSignature": "AZURE_STORAGE_SAS_TOKEN",
        "BlobEndpoint": "AZURE_STORAGE_ENDPOINT",
    }
    pairs = [part.partition("=") for part in variables.get("AZURE_STORAGE_CONNECTION_STRING", "").split(";")]
    return {names[name.strip()]: value for name, _, value in pairs if name.strip() in names}
