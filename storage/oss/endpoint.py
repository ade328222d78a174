"""How to reach an OSS bucket: endpoint, region, credentials.

Alibaba's client and our own requests are both configured from `OssAccess`: they must agree.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec

from podferry.contract.errors import FerryError, InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.credentials.endpoints import checked_endpoint
from podferry.storage.credentials.sources import variable_names
from podferry.storage.errors.translate import StoreLocation, store_error, store_location, unused_keys
from podferry.storage.network.settings import DIRECT, Network
from podferry.storage.oss.keys import KEY_PREFIXES, OssKeys, OssSource, configured_keys, oss_source
from podferry.storage.store import StoreConfig

VENDOR_DOMAIN = ".aliyuncs.com"
REGION = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
ENDPOINT_REGION = re.compile(r"(?:^|[.-])oss-(?!accelerate)([a-z0-9-]+?)(?:-internal)?\.aliyuncs\.com$")
"""Of `oss-cn-hangzhou.aliyuncs.com`, also internal and in a VPC, but not of an accelerated endpoint."""
DUAL_STACK_REGION = re.compile(r"(?:^|\.)([a-z0-9-]+)\.oss\.aliyuncs\.com$")
"""Of `cn-hangzhou.oss.aliyuncs.com`. Source: "Regions and endpoints", Alibaba's OSS user guide."""
INTERNAL = "-internal."
REGION_REMEDY = "Set OSS_REGION, --region or podferry.io/region, such as cn-hangzhou"


class OssAccess(msgspec.Struct, frozen=True):
    """How to reach an OSS bucket.

    `bucket` is the one of the URI without a host. `variables` are the configured credentials by their usual
    names; `reload_credentials` reads them again if they may change.
    """

    uri: Uri
    bucket: str
    endpoint: str
    region: str
    source: OssSource
    variables: Mapping[str, str]
    reload_credentials: Callable[[], Mapping[str, str]] | None = None
    network: Network = DIRECT

    def __repr__(self) -> str:
        return f"OssAccess({self.location!r}, region={self.region!r}, source={self.source.value})"

    def keys(self) -> OssKeys:
        """The configured keys, read again if they may have changed; if that fails, those of the start."""
        keys = configured_keys(self.variables)
        if self.reload_credentials is not None:
            with suppress(FerryError, OSError):
                keys = configured_keys(self.reload_credentials()) or keys
        assert keys is not None, "the source is keys"  # noqa: S101
        return keys

    @property
    def location(self) -> StoreLocation:
        """For errors."""
        names = variable_names(self.variables, *KEY_PREFIXES)
        unused = unused_keys(self.variables, names, self.reload_credentials)
        return store_location(self.uri, self.endpoint, names, self.network, unused)

    @property
    def path_style(self) -> bool:
        """Whether the bucket is in the path: below an IP address there are no hosts of buckets."""
        return is_address(urlsplit(self.endpoint).hostname or "")

    @property
    def bucket_url(self) -> str:
        """URL of the bucket; a slash and the key follow."""
        split = urlsplit(self.endpoint)
        host = f"{self.bucket}.{split.netloc}"
        return f"{self.endpoint}/{self.bucket}" if self.path_style else f"{split.scheme}://{host}"

    @property
    def internal(self) -> bool:
        """Whether the endpoint is of Alibaba's internal network."""
        return INTERNAL in self.endpoint


def oss_access(uri: Uri, config: StoreConfig) -> OssAccess:
    """How to reach the OSS bucket of a URI. Sends nothing.

    Raises:
        CredentialsMissing: There are none, and no role that could give them.
        InvalidSpec: Endpoint or region are missing, or the configuration contradicts itself.
    """
    variables = config.credentials
    bucket, _, host = uri.bucket.partition(".")
    if host and not host.endswith(VENDOR_DOMAIN):
        remedy = f"Write oss://{bucket}/… and set OSS_ENDPOINT or --endpoint"
        raise InvalidSpec.of(f"a host in an oss:// URI must end with {VENDOR_DOMAIN}", host, remedy)
    endpoint, region = _endpoint(uri, bucket, host, config)
    source = oss_source(variables)
    access = OssAccess(
        uri, bucket, endpoint, region, source, variables, config.reload_credentials, config.network
    )
    if source is OssSource.NONE:
        raise store_error("credentials", access.location)
    return access


def _endpoint(uri: Uri, bucket: str, host: str, config: StoreConfig) -> tuple[str, str]:
    """Endpoint and region: each follows from the other if only one is configured."""
    variables = config.credentials
    stated = config.region or variables.get("OSS_REGION", "")
    region = stated.removeprefix("oss-")
    if stated and not REGION.fullmatch(region):
        raise InvalidSpec.of("the region of OSS is not valid", repr(stated), REGION_REMEDY)
    named = config.endpoint or variables.get("OSS_ENDPOINT") or host or variables.get("URL", "")
    if not (named or region):
        remedy = "Set OSS_REGION, such as cn-hangzhou, or OSS_ENDPOINT, such as "
        example = "https://oss-cn-hangzhou-internal.aliyuncs.com"
        raise InvalidSpec.of(f"the endpoint of {uri} is unknown", "no region, no endpoint", remedy + example)
    endpoint = _service_url(named, bucket) if named else f"https://oss-{region}.aliyuncs.com"
    region = region or _region_of(urlsplit(endpoint).hostname or "") or _region_of(host)
    if not region:
        raise InvalidSpec.of(f"the region of {uri} is unknown", f"endpoint {endpoint}", REGION_REMEDY)
    return endpoint, region


def _service_url(endpoint: str, bucket: str) -> str:
    """The URL of the service: endpoints are often written without a scheme, or with the bucket."""
    url = checked_endpoint(endpoint if "://" in endpoint else f"https://{endpoint}")
    split = urlsplit(url)
    return f"{split.scheme}://{split.netloc.removeprefix(f'{bucket}.')}"


def _region_of(host: str) -> str:
    found = ENDPOINT_REGION.search(host) or DUAL_STACK_REGION.search(host)
    return found[1] if found else ""


def is_address(host: str) -> bool:
    """Whether a host is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
