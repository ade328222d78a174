"""The credentials of an Azure store: which ones, and their current value.

obstore and our own requests use what is found here: they must agree, and obstore by itself would combine a
Secret's credentials with variables of the environment.
"""

from __future__ import annotations

import base64
import binascii
import enum
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from podferry.contract.errors import FerryError, InvalidSpec
from podferry.storage.credentials.sources import is_true

EARLY_SECONDS = 300
"""A token is requested again so long before it expires, as Azure's own libraries do."""


class AzureSource(enum.Enum):
    """Where the credentials of an Azure store come from, in the order of choice."""

    ANONYMOUS = "anonymous"
    TOKEN = "token"  # noqa: S105 - a kind
    KEY = "key"
    SAS = "shared access signature"
    CLIENT_SECRET = "client secret"  # noqa: S105 - a kind
    WORKLOAD_IDENTITY = "workload identity"
    MANAGED_IDENTITY = "managed identity"
    NONE = "none"


IDENTITIES = (AzureSource.CLIENT_SECRET, AzureSource.WORKLOAD_IDENTITY, AzureSource.MANAGED_IDENTITY)
REQUIRED = {
    AzureSource.TOKEN: ("AZURE_STORAGE_TOKEN",),
    AzureSource.KEY: ("AZURE_STORAGE_ACCOUNT_KEY",),
    AzureSource.SAS: ("AZURE_STORAGE_SAS_TOKEN",),
    AzureSource.CLIENT_SECRET: ("AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"),
    AzureSource.WORKLOAD_IDENTITY: ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"),
}
"""The variables of each source: it is used if all are set."""
VALUES = {source: REQUIRED[source][0] for source in (AzureSource.TOKEN, AzureSource.KEY, AzureSource.SAS)}


class AzureCredential(NamedTuple):
    """What signs a request: the account's key in base64, a shared access signature, or a bearer token.

    Attributes:
        source: Which of them; identities give tokens.
        value: Its text.
        expires: Seconds since the epoch, or 0 if it does not expire.
    """

    source: AzureSource
    value: str
    expires: float = 0.0


def azure_source(variables: Mapping[str, str]) -> AzureSource:
    """Where a store with these variables gets its credentials."""
    if is_true(variables.get("AZURE_SKIP_SIGNATURE", "")):
        return AzureSource.ANONYMOUS
    for source, names in REQUIRED.items():
        if all(variables.get(name) for name in names):
            return source
    wanted = is_true(variables.get("AZURE_USE_MANAGED_IDENTITY", "")) or variables.get("AZURE_CLIENT_ID")
    return AzureSource.MANAGED_IDENTITY if wanted or variables.get("AZURE_MSI_ENDPOINT") else AzureSource.NONE


def with_connection_string(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables, and those of a connection string that are not set themselves."""
    names = {
        "AccountName": "AZURE_STORAGE_ACCOUNT_NAME",
        "AccountKey": "AZURE_STORAGE_ACCOUNT_KEY",
        "SharedAccessSignature": "AZURE_STORAGE_SAS_TOKEN",
        "BlobEndpoint": "AZURE_STORAGE_ENDPOINT",
    }
    pairs = [part.partition("=") for part in variables.get("AZURE_STORAGE_CONNECTION_STRING", "").split(";")]
    found = {names[name.strip()]: value for name, _, value in pairs if name.strip() in names}
    return {**found, **variables}


def decoded_key(key: str) -> bytes:
    """The bytes of an account's key.

    obstore refuses a key whose last character has bits of no byte, as one that was mistyped may have;
    Python's decoder drops them.

    Raises:
        InvalidSpec: It is not base64.
    """
    try:
        found = base64.b64decode(key, validate=True)
    except binascii.Error:
        found = b""
    if base64.b64encode(found).decode() != key or not key:
        what = "AZURE_STORAGE_ACCOUNT_KEY is no key of a storage account"
        raise InvalidSpec.of(what, "not base64", "Copy one of the account's two access keys")
    return found


class AzureCredentialsProvider:
    """Gives the credentials of one store. Thread-safe."""

    def __init__(
        self,
        variables: Mapping[str, str],
        reload_credentials: Callable[[], Mapping[str, str]] | None,
        request_token: Callable[[Mapping[str, str]], AzureCredential],
    ) -> None:
        """Prepare a provider.

        Args:
            variables: The configured ones.
            reload_credentials: Reads them again, or None.
            request_token: Asks the service of an identity; it blocks.
        """
        self._variables, self._reload = variables, reload_credentials
        self._request_token = request_token
        self._token: AzureCredential | None = None
        self._lock = threading.Lock()
        self.lasting = reload_credentials is None and azure_source(variables) not in IDENTITIES

    def load(self) -> AzureCredential | None:
        """The credentials now, or None for anonymous access. Blocks if a token is due.

        Raises:
            FerryError: The service of an identity gives none.
        """
        with self._lock:
            variables = self._current()
            source = azure_source(variables)
            if source in VALUES:
                return AzureCredential(source, variables[VALUES[source]])
            return self._identity(variables) if source in IDENTITIES else None

    def _current(self) -> Mapping[str, str]:
        """The variables, read again if they may have changed; if that fails, those of the start."""
        if self._reload is None:
            return self._variables
        try:
            found = with_connection_string(self._reload())
        except (FerryError, OSError):
            return self._variables
        return self._variables if azure_source(found) is AzureSource.NONE else found

    def _identity(self, variables: Mapping[str, str]) -> AzureCredential:
        token = self._token
        if token is None or token.expires - EARLY_SECONDS < time.time():
            try:
                token = self._token = self._request_token(variables)
            except FerryError:
                if token is None or token.expires < time.time():
                    raise
        return token
