"""How an S3 store is reached: endpoint, region, keys.

Decided in one place, since two clients must agree on it: obstore's, and that of uploads in parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from podferry.contract.errors import FerryError
from podferry.contract.uri import Uri
from podferry.storage.credentials.endpoints import VENDORS, checked_endpoint
from podferry.storage.credentials.sources import AwsSource, aws_source, is_true, names_for
from podferry.storage.errors.translate import StoreLocation, make
from podferry.storage.s3.sigv4 import S3Credentials
from podferry.storage.store import StoreConfig


def s3_endpoint(uri: Uri, config: StoreConfig) -> tuple[str, str]:
    """Endpoint and region of an S3 store: what is configured, else the vendor's own."""
    held, vendor = config.credentials, VENDORS[uri.scheme]
    region = config.region or held.get("AWS_REGION") or held.get("AWS_DEFAULT_REGION") or vendor.region
    named = config.endpoint or held.get("AWS_ENDPOINT_URL_S3") or held.get("AWS_ENDPOINT_URL")
    return checked_endpoint(named or vendor.endpoint.format(region=region)), region


class S3Access(msgspec.Struct, frozen=True):
    """How an S3 store is reached: obstore's client and that of uploads in parts are both made from it.

    Attributes:
        uri: The store's.
        endpoint: Of the service.
        region: The vendor's name of it.
        virtual: Whether the bucket is a part of the host's name.
        source: Where the credentials come from.
        held: The configuration's variables.
        renewed: Reads them anew, where they may be exchanged meanwhile.
    """

    uri: Uri
    endpoint: str
    region: str
    virtual: bool
    source: AwsSource
    held: Mapping[str, str]
    renewed: Callable[[], Mapping[str, str]] | None = None

    def credentials(self) -> S3Credentials:
        """The configured keys as they are now; those of the start if they cannot be read again."""
        held = self.held
        if self.renewed is not None:
            with suppress(FerryError, OSError):
                found = self.renewed()
                held = found if aws_source(found) is AwsSource.KEYS else held
        token = held.get("AWS_SESSION_TOKEN")
        return S3Credentials(held["AWS_ACCESS_KEY_ID"], held["AWS_SECRET_ACCESS_KEY"], token)

    @property
    def place(self) -> StoreLocation:
        """For errors."""
        return StoreLocation(self.uri, self.endpoint, names_for(self.held, "AWS_"))

    @property
    def bucket_url(self) -> str:
        """Address of the bucket; keys follow behind a slash."""
        bucket = self.uri.bucket
        return _virtual(self.endpoint, bucket) if self.virtual else f"{self.endpoint}/{bucket}"


def s3_access(uri: Uri, config: StoreConfig) -> S3Access:
    """How the S3 store of a URI is reached. Sends nothing.

    Raises:
        CredentialsMissing: There is nothing to sign requests with, and nowhere to get it.
        InvalidWish: The configuration contradicts itself.
    """
    held = config.credentials
    endpoint, region = s3_endpoint(uri, config)
    virtual = is_true(held.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", ""))
    access = S3Access(uri, endpoint, region, virtual, aws_source(held), held, config.renewed)
    if access.source is AwsSource.NONE:
        raise make("credentials", access.place)
    return access


def _virtual(endpoint: str, bucket: str) -> str:
    scheme, _, host = endpoint.partition("://")
    return f"{scheme}://{bucket}.{host}"
