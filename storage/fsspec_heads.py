"""Which requests fetch what fsspec's file systems read, where these are plain HTTP.

Not of OSS: its signatures could be tried against no server. Not of Azure: its engine is obstore. Not where
the user has named options of a file system's own (`FSSPEC_<SCHEME>_<OPTION>`): they may change what it sends.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from podferry.contract.uri import Uri
from podferry.storage.fsspec_config import GOOGLE, HTTP, S3, Settings
from podferry.storage.naming import join
from podferry.storage.plain_heads import Plain, PlainHeads
from podferry.storage.renewing import Renewing
from podferry.storage.requests import Requests, address_of
from podferry.storage.s3_access import s3_access
from podferry.storage.s3_heads import heads_for as s3_heads
from podferry.storage.store import StoreConfig
from podferry.storage.translate import translating

ELSEWHERE = ("STORAGE_EMULATOR_HOST", "GOOGLE_CLOUD_UNIVERSE_DOMAIN", "GOOGLE_API_USE_MTLS_ENDPOINT")
"""Variables of the process that send gcsfs to another address, where none is configured."""


def heads_for(
    uri: Uri, config: StoreConfig, settings: Settings, file_system: Callable[[], Any]
) -> Requests | None:
    """How objects of a store are asked for, None where only the file system can.

    Args:
        uri: The store's.
        config: Its credentials and endpoint.
        settings: How its file system is opened.
        file_system: Opens it, at the first call; may block.
    """
    if settings.customised:
        return None
    if uri.scheme in S3:
        bundle = os.environ.get("AWS_CA_BUNDLE", "")  # botocore reads it there
        return s3_heads(s3_access(uri, config), bundle)
    if uri.scheme in GOOGLE:
        return _google(uri, settings, file_system)
    return _http(uri) if uri.scheme in HTTP else None


def _http(uri: Uri) -> Requests | None:
    address = address_of(f"{uri.scheme}://{uri.bucket}")
    if address is None:
        return None

    def path(name: str) -> str:
        return f"/{quote(join(uri.key, name))}"

    return PlainHeads(Plain(address, path, "Accept-Encoding: identity\r\n"))


def _google(uri: Uri, settings: Settings, file_system: Callable[[], Any]) -> Requests | None:
    """By the JSON API, as gcsfs reads: the tag is that of the JSON API.

    It is compared with the answer's, and not sent: the service and its emulator disagree about how. Objects
    that are stored compressed come as they are stored, as it is those bytes that a listing counts.
    """
    named = settings.options.get("endpoint_url", "")
    if not named and any(os.environ.get(name) for name in ELSEWHERE):
        return None
    address = address_of(named or "https://storage.googleapis.com")
    if address is None:
        return None
    start = f"{address.path}/download/storage/v1/b/{quote(uri.bucket, safe='')}/o/"

    def path(name: str) -> str:
        return f"{start}{quote(join(uri.key, name), safe='')}?alt=media"

    def token() -> str:
        headers: dict[str, str] = {}
        with translating(settings.place, ""):
            file_system().credentials.apply(headers)
        return "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    return PlainHeads(Plain(address, path, "Accept-Encoding: gzip\r\n", matches=False, token=Renewing(token)))
