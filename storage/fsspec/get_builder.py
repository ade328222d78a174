"""Which requests fetch what fsspec's file systems read, where these are plain HTTP.

Not of Azure: its engine is obstore. Not where the user has named options of a file system's own
(`FSSPEC_<SCHEME>_<OPTION>`): they may change what it sends.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from podferry.contract.uri import Uri
from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.errors.translate import translating
from podferry.storage.fsspec.options import GOOGLE_SCHEMES, HTTP_SCHEMES, S3_SCHEMES, FsspecOptions
from podferry.storage.http.get_builder import PlainGetBuilder, PlainRequest
from podferry.storage.object_names import join
from podferry.storage.request_builder import RequestBuilder, request_address
from podferry.storage.s3.endpoint import s3_access
from podferry.storage.s3.get_builder import get_builder_for as s3_heads
from podferry.storage.store import StoreConfig

SIGNED_URL_SECONDS = 3600
"""Seconds that a signed URL holds: it is sent at once, but clocks differ."""
GCSFS_ADDRESS_VARIABLES = (
    "STORAGE_EMULATOR_HOST",
    "GOOGLE_CLOUD_UNIVERSE_DOMAIN",
    "GOOGLE_API_USE_MTLS_ENDPOINT",
)
"""Variables of the process that send gcsfs to another address, where none is configured."""


def get_builder_for(
    uri: Uri, config: StoreConfig, settings: FsspecOptions, file_system: Callable[[], Any]
) -> RequestBuilder | None:
    """How objects of a store are asked for, None where only the file system can.

    Args:
        uri: The store's.
        config: Its credentials and endpoint.
        settings: How its file system is opened.
        file_system: Opens it, at the first call; may block.
    """
    if settings.customised:
        return None
    if uri.scheme in S3_SCHEMES:
        ca_bundle = os.environ.get("AWS_CA_BUNDLE", "")  # botocore reads it there
        return s3_heads(s3_access(uri, config), ca_bundle)
    if uri.scheme in GOOGLE_SCHEMES:
        return _google(uri, settings, file_system)
    if uri.scheme == "oss":
        return _oss(uri, settings)
    return _http(uri) if uri.scheme in HTTP_SCHEMES else None


def _http(uri: Uri) -> RequestBuilder | None:
    address = request_address(f"{uri.scheme}://{uri.bucket}")
    if address is None:
        return None

    def path(name: str) -> str:
        return f"/{quote(join(uri.key, name))}"

    return PlainGetBuilder(PlainRequest(address, path, "Accept-Encoding: identity\r\n"))


def _oss(uri: Uri, settings: FsspecOptions) -> RequestBuilder | None:
    """By URLs that oss2 signs, with the keys that ossfs takes.

    Other than with S3 the answer to a range states the checksum of the whole, too.
    """
    given = settings.options
    key, secret, token = (given.get(name, "") for name in ("key", "secret", "token"))
    try:
        oss2 = import_module("oss2")
        auth = oss2.StsAuth(key, secret, token) if token else oss2.Auth(key, secret)
        bucket = oss2.Bucket(auth if key else oss2.AnonymousAuth(), given["endpoint"], uri.bucket)
    except Exception:  # noqa: BLE001 - whatever is wrong with them, the file system says it better
        return None

    def signed(name: str) -> SplitResult:
        url: str = bucket.sign_url("GET", join(uri.key, name), SIGNED_URL_SECONDS, slash_safe=True)
        return urlsplit(url)

    def path(name: str) -> str:
        url = signed(name)
        return f"{url.path}?{url.query}" if url.query else url.path

    start = signed("any")
    address = request_address(f"{start.scheme}://{start.netloc}")
    return (
        None
        if address is None
        else PlainGetBuilder(PlainRequest(address, path, "Accept-Encoding: identity\r\n"))
    )


def _google(uri: Uri, settings: FsspecOptions, file_system: Callable[[], Any]) -> RequestBuilder | None:
    """By the JSON API, as gcsfs reads: the tag is that of the JSON API.

    It is compared with the answer's, and not sent: the service and its emulator disagree about how. Objects
    that are stored compressed come as they are stored, as it is those bytes that a listing counts.
    """
    named = settings.options.get("endpoint_url", "")
    if not named and any(os.environ.get(name) for name in GCSFS_ADDRESS_VARIABLES):
        return None
    address = request_address(named or "https://storage.googleapis.com")
    if address is None:
        return None
    start = f"{address.path}/download/storage/v1/b/{quote(uri.bucket, safe='')}/o/"

    def path(name: str) -> str:
        return f"{start}{quote(join(uri.key, name), safe='')}?alt=media"

    def token() -> str:
        headers: dict[str, str] = {}
        with translating(settings.location, ""):
            file_system().credentials.apply(headers)
        return "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    return PlainGetBuilder(
        PlainRequest(address, path, "Accept-Encoding: gzip\r\n", matches=False, token=RefreshedValue(token))
    )
