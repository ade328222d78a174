"""Builds GET requests for what fsspec's file systems read over plain HTTP.

Not for Azure, whose engine is obstore, nor if the user has set a file system's own options
(`FSSPEC_<SCHEME>_<OPTION>`): they may change its requests.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from podferry.contract.uri import Uri
from podferry.storage.credentials.refresh import RefreshedValue
from podferry.storage.errors.translate import translating
from podferry.storage.fsspec.google_credentials import ANONYMOUS
from podferry.storage.fsspec.options import (
    GOOGLE_ADDRESS,
    GOOGLE_SCHEMES,
    S3_SCHEMES,
    FsspecOptions,
)
from podferry.storage.http.get_requests import PlainGetBuilder, PlainRequest
from podferry.storage.network.settings import Network
from podferry.storage.object_names import join
from podferry.storage.request_builder import RequestBuilder, request_address
from podferry.storage.s3.endpoint import s3_access
from podferry.storage.s3.get_requests import get_builder_for as s3_get_builder
from podferry.storage.store import StoreConfig

GCSFS_ADDRESS_VARIABLES = (
    "STORAGE_EMULATOR_HOST",
    "GOOGLE_CLOUD_UNIVERSE_DOMAIN",
    "GOOGLE_API_USE_MTLS_ENDPOINT",
)
"""Variables of the process that make gcsfs use another address if none is configured."""


def get_builder_for(
    uri: Uri, config: StoreConfig, options: FsspecOptions, file_system: Callable[[], Any]
) -> RequestBuilder | None:
    """The builder for a store, or None if only its file system can send requests.

    `file_system` opens the file system at the first call; it may block.
    """
    if options.customized:
        return None
    if uri.scheme in S3_SCHEMES:
        return s3_get_builder(s3_access(uri, config))
    return _google(uri, config.network, options, file_system) if uri.scheme in GOOGLE_SCHEMES else None


def google_address(options: FsspecOptions) -> str | None:
    """URL of the service that gcsfs uses, or None if a variable of the process decides."""
    endpoint = str(options.options.get("endpoint_url", ""))
    if not endpoint and any(os.environ.get(name) for name in GCSFS_ADDRESS_VARIABLES):
        return None
    return endpoint or GOOGLE_ADDRESS


def google_token_headers(options: FsspecOptions, file_system: Callable[[], Any]) -> dict[str, str]:
    """Headers with the current token of gcsfs. Blocks. Without credentials gcsfs is not loaded."""
    headers: dict[str, str] = {}
    if options.options.get("token") == ANONYMOUS:
        return headers
    with translating(options.location, ""):
        file_system().credentials.apply(headers)
    return headers


def _google(
    uri: Uri, network: Network, options: FsspecOptions, file_system: Callable[[], Any]
) -> RequestBuilder | None:
    """With the JSON API, like gcsfs, and that API's tag.

    The tag is compared with the response's, not sent: the service and its emulator disagree on how. Objects
    stored with compression arrive as stored, because listings count those bytes.
    """
    url = google_address(options)
    address = request_address(url, network) if url else None
    if address is None:
        return None
    prefix = f"{address.path}/download/storage/v1/b/{quote(uri.bucket, safe='')}/o/"

    def path(name: str) -> str:
        return f"{prefix}{quote(join(uri.key, name), safe='')}?alt=media"

    def token() -> str:
        headers = google_token_headers(options, file_system)
        return "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    return PlainGetBuilder(
        PlainRequest(address, path, "Accept-Encoding: gzip\r\n", matches=False, token=RefreshedValue(token))
    )
