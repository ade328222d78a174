"""How to reach an S3 store: endpoint, region, credentials.

obstore's client and our own are both configured from `S3Access`: they must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from podferry.contract.errors import FerryError
from podferry.contract.uri import Uri
from podferry.storage.credentials.endpoints import S3_VENDORS, checked_endpoint
from podferry.storage.credentials.sources import AwsSource, aws_source, is_true, variable_names
from podferry.storage.errors.translate import StoreLocation, store_error, store_location
from podferry.storage.network.settings import DIRECT, Network
from podferry.storage.s3.sigv4 import S3Credentials
from podferry.storage.store import StoreConfig


def s3_endpoint(uri: Uri, config: StoreConfig) -> tuple[str, str]:
    """Endpoint and region of an S3 store: as configured, else the vendor's defaults."""
    read, vendor = config.credentials.get, S3_VENDORS[uri.scheme]
    region = config.region or read("AWS_REGION") or read("AWS_DEFAULT_REGION") or vendor.region
    configured = config.endpoint or read("AWS_ENDPOINT_URL_S3") or read("AWS_ENDPOINT_URL")
    return checked_endpoint(configured or vendor.endpoint.format(region=region)), region


class S3Access(msgspec.Struct, frozen=True):
    """How to reach an S3 store.

    If `virtual_hosted`, the host's name has the bucket. `variables` are the configured credentials by their
    usual names; `reload_credentials` reads them again if they may change.
    """

    uri: Uri
    endpoint: str
    region: str
    virtual_hosted: bool
    source: AwsSource
    variables: Mapping[str, str]
    reload_credentials: Callable[[], Mapping[str, str]] | None = None
    network: Network = DIRECT

    def credentials(self) -> S3Credentials:
        """The configured keys, read again if they may have changed; if that fails, those of the start."""
        variables = self.variables
        if self.reload_credentials is not None:
            with suppress(FerryError, OSError):
                found = self.reload_credentials()
                variables = found if aws_source(found) is AwsSource.KEYS else variables
        token = variables.get("AWS_SESSION_TOKEN")
        return S3Credentials(variables["AWS_ACCESS_KEY_ID"], variables["AWS_SECRET_ACCESS_KEY"], token)

    @property
    def location(self) -> StoreLocation:
        """For errors."""
        names = variable_names(self.variables, "AWS_")
        return store_location(self.uri, self.endpoint, names, self.network)

    @property
    def bucket_url(self) -> str:
        """URL of the bucket; a slash and the key follow."""
        scheme, _, host = self.endpoint.partition("://")
        bucket = self.uri.bucket
        return f"{scheme}://{bucket}.{host}" if self.virtual_hosted else f"{self.endpoint}/{bucket}"


def s3_access(uri: Uri, config: StoreConfig) -> S3Access:
    """How to reach the S3 store of a URI. Sends nothing.

    Raises:
        CredentialsMissing: There are none, and no service that could provide them.
        InvalidSpec: The configuration contradicts itself.
    """
    variables = config.credentials
    endpoint, region = s3_endpoint(uri, config)
    virtual_hosted = is_true(variables.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", ""))
    source = aws_source(variables)
    access = S3Access(
        uri, endpoint, region, virtual_hosted, source, variables, config.reload_credentials, config.network
    )
    if access.source is AwsSource.NONE:
        raise store_error("credentials", access.location)
    return access
