"""How to reach an S3 store: endpoint, region, credentials.

obstore's client and our own are both configured from `S3Access`: they must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from podferry.contract.errors import FerryError
from podferry.contract.uri import Uri
from podferry.storage.credentials.endpoints import S3_VENDORS, checked_endpoint, host_label
from podferry.storage.credentials.profile_error import no_credentials
from podferry.storage.credentials.sources import AwsSource, aws_source, is_true, variable_names
from podferry.storage.errors.translate import StoreLocation, store_location, unused_keys
from podferry.storage.network.settings import DIRECT, Network
from podferry.storage.s3.bos import BOS_SCHEME, bos_as_s3, bos_bucket, bos_names
from podferry.storage.s3.sigv4 import S3Credentials
from podferry.storage.store import StoreConfig

REQUESTER_PAYS = {"x-amz-request-payer": "requester"}
"""Sent, and signed, with each request to a bucket whose readers pay: "Using Requester Pays", Amazon S3."""
NO_HEADERS: Mapping[str, str] = {}


def s3_endpoint(uri: Uri, config: StoreConfig) -> tuple[str, str]:
    """Endpoint and region of an S3 store: as configured, else the vendor's defaults."""
    read, vendor = config.credentials.get, S3_VENDORS[uri.scheme]
    region = config.region or read("AWS_REGION") or read("AWS_DEFAULT_REGION") or vendor.region
    configured = config.endpoint or read("AWS_ENDPOINT_URL_S3") or read("AWS_ENDPOINT_URL")
    if configured:
        return checked_endpoint(configured), region
    return vendor.endpoint.format(region=host_label("the region", region)), region


class S3Access(msgspec.Struct, frozen=True):
    """How to reach an S3 store.

    Attributes:
        uri: Of the store.
        bucket: Without the host that some URIs name with it.
        endpoint: URL of the service.
        region: Signatures have it.
        virtual_hosted: Whether the host's name has the bucket.
        source: Of the credentials.
        variables: The configured credentials, by Amazon's names.
        reload_credentials: Reads them again if they may change.
        network: Trusted certificates and proxies.
        read: Names of the variables that were read, for messages.
        request_headers: Sent and signed with each request.
    """

    uri: Uri
    bucket: str
    endpoint: str
    region: str
    virtual_hosted: bool
    source: AwsSource
    variables: Mapping[str, str]
    reload_credentials: Callable[[], Mapping[str, str]] | None = None
    network: Network = DIRECT
    read: tuple[str, ...] = ()
    request_headers: Mapping[str, str] = NO_HEADERS

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
        of_secret = None if self.uri.scheme == BOS_SCHEME else self.reload_credentials  # BOS renames them
        unused = unused_keys(self.variables, self.read, of_secret)
        return store_location(self.uri, self.endpoint, self.read, self.network, unused)

    @property
    def bucket_url(self) -> str:
        """URL of the bucket; a slash and the key follow."""
        scheme, _, host = self.endpoint.partition("://")
        return f"{scheme}://{self.bucket}.{host}" if self.virtual_hosted else f"{self.endpoint}/{self.bucket}"


def s3_access(uri: Uri, config: StoreConfig) -> S3Access:
    """How to reach the S3 store of a URI. Sends nothing.

    Raises:
        CredentialsMissing: There are none, and no service that could provide them.
        InvalidSpec: The configuration contradicts itself.
    """
    bos = uri.scheme == BOS_SCHEME
    read = bos_names(config.credentials) if bos else variable_names(config.credentials, "AWS_")
    config = bos_as_s3(uri, config) if bos else config
    variables = config.credentials
    endpoint, region = s3_endpoint(uri, config)
    access = S3Access(
        uri,
        bos_bucket(uri) if bos else uri.bucket,
        endpoint,
        region,
        is_true(variables.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "")),
        aws_source(variables),
        variables,
        config.reload_credentials,
        config.network,
        read,
        REQUESTER_PAYS if requester_pays(variables) else NO_HEADERS,
    )
    if access.source is AwsSource.NONE:
        raise no_credentials(access.location, variables)
    return access


def requester_pays(variables: Mapping[str, str]) -> bool:
    """Whether `AWS_REQUEST_PAYER` says that the reader of a bucket pays: `requester`, as in its header."""
    value = variables.get("AWS_REQUEST_PAYER", "")
    return value.strip().lower() == "requester" or is_true(value)
