"""Baidu Object Storage: the settings of its S3 endpoint, from BOS's own variables and host names.

Never from `AWS_*`: those belong to another store, and a signature with its keys would be refused. Source of
the hosts: "Get Access Domain Name", documentation of BOS; its S3 service is `s3.REGION.bcebos.com`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.credentials.endpoints import S3_VENDORS, host_label
from podferry.storage.store import StoreConfig

BOS_SCHEME = "bos"
NAMES = {
    "AWS_ACCESS_KEY_ID": ("BOS_ACCESS_KEY_ID", "access-key", "ak"),
    "AWS_SECRET_ACCESS_KEY": ("BOS_SECRET_ACCESS_KEY", "secret-key", "sk"),
    "AWS_SESSION_TOKEN": ("BOS_SESSION_TOKEN",),
    "AWS_SKIP_SIGNATURE": ("BOS_SKIP_SIGNATURE",),
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": ("BOS_VIRTUAL_HOSTED_STYLE_REQUEST",),
}
"""BOS's names, by Amazon's: of variables, of the Secret of Paddle Operator's SampleSet, of the CSI plugin's.

Sources: PaddleFlow/paddle-operator, `docs/en/ext-get-start.md`; "Using Object Storage BOS", documentation of
Baidu's container engine.
"""
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
BUCKET_HOST = re.compile(r"([a-z0-9][a-z0-9-]{1,61}[a-z0-9])(?:\.s3)?\.([a-z0-9-]+)\.bcebos\.com")
"""A bucket with its host, as Paddle Operator writes it; names of buckets have no dots."""
OWN_HOST = re.compile(r"(?:(https?)://)?(?:s3\.)?([a-z0-9-]+)\.bcebos\.com/*")
"""An endpoint of BOS, perhaps that of its own protocol and without `https://`, as BOS's pages show it."""


def bos_bucket(uri: Uri) -> str:
    """The bucket of a URI, without a host.

    Raises:
        InvalidSpec: The URI has a host that is none of a bucket.
    """
    if "." not in uri.bucket:
        return uri.bucket
    return _bucket_and_region(uri)[0]


def _bucket_and_region(uri: Uri) -> tuple[str, str]:
    found = BUCKET_HOST.fullmatch(uri.bucket)
    if found is None:
        remedy = f"Write bos://BUCKET/{uri.key} or bos://BUCKET.REGION.bcebos.com/{uri.key}"
        raise InvalidSpec.of("the URI does not name a bucket of BOS", str(uri), remedy)
    return found[1], found[2]


def bos_as_s3(uri: Uri, config: StoreConfig) -> StoreConfig:
    """The configuration of the bucket's S3 service, by Amazon's names.

    Raises:
        CredentialsMissing: Only one half of a key pair is set.
        InvalidSpec: The URI has a host that is none of a bucket.
    """
    read = config.credentials.get
    configured = config.endpoint or read("BOS_ENDPOINT") or ""
    own = OWN_HOST.fullmatch(configured)
    named = _bucket_and_region(uri)[1] if "." in uri.bucket else ""
    region = (
        named or config.region or read("BOS_REGION") or (own[2] if own else S3_VENDORS[BOS_SCHEME].region)
    )
    if own:
        configured = f"{own[1] or 'https'}://s3.{host_label('the region', region)}.bcebos.com"
    reload_credentials = config.reload_credentials
    return msgspec.structs.replace(
        config,
        endpoint=configured or _vendor_endpoint(region),
        region=region,
        credentials=_renamed(config.credentials),
        reload_credentials=reload_credentials and partial(_reloaded, reload_credentials),
    )


def _vendor_endpoint(region: str) -> str:
    return S3_VENDORS[BOS_SCHEME].endpoint.format(region=host_label("the region", region))


def _reloaded(reload_credentials: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
    return _renamed(reload_credentials())


def bos_names(credentials: Mapping[str, str]) -> tuple[str, ...]:
    """Names of what is read, for messages."""
    known = {name for names in NAMES.values() for name in names}
    return tuple(sorted(name for name in credentials if name.startswith("BOS_") or name in known))


def _renamed(credentials: Mapping[str, str]) -> dict[str, str]:
    """The credentials by Amazon's names. No service gives any: none of Amazon's may be asked."""
    found = {
        amazon: next((credentials[name] for name in names if credentials.get(name)), "")
        for amazon, names in NAMES.items()
    }
    halves = [NAMES[name][0] for name in KEYS if found[name]]
    if len(halves) == 1:
        missing = next(NAMES[name][0] for name in KEYS if not found[name])
        raise CredentialsMissing.of(f"{missing} is missing", f"{halves[0]} is set", f"Set {missing} too")
    return {**{name: value for name, value in found.items() if value}, "AWS_EC2_METADATA_DISABLED": "true"}
