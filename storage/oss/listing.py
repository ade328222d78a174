"""Listings of OSS: as strict as those of S3, whose second version OSS has too ("ListObjectsV2")."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

import msgspec

from podferry.storage.errors.translate import store_error
from podferry.storage.http.store_client import StoreRequest, StoreResponse
from podferry.storage.oss.client import OssClient, OssRequest
from podferry.storage.oss.response import OssResponse
from podferry.storage.s3.listing import S3Lister
from podferry.storage.s3.listing_page import ListedPage, UnreadableListing
from podferry.storage.s3.response import NotFromS3


class ListingRequests:
    """Requests of a lister; connections stay open for the store's other requests."""

    def __init__(self, client: OssClient) -> None:
        self._client = client

    async def fetch(self, request: StoreRequest, parse: Callable[[StoreResponse], ListedPage]) -> ListedPage:
        """The page of a request."""

        def read(response: OssResponse) -> ListedPage:
            try:
                page = parse(StoreResponse(response.status, response.headers, response.text))
            except UnreadableListing as error:
                raise store_error("unreadable", self._client.location, "", error.detail) from error
            except NotFromS3 as error:
                raise store_error("not oss", self._client.location, "", error.detail) from error
            # With encoded names OSS encodes the token too; Alibaba's client sends it decoded.
            return msgspec.structs.replace(page, token=unquote(page.token))

        return await self._client.fetch(OssRequest(request.method, query=request.query), read)

    async def close(self) -> None:
        """Nothing: the store closes its client."""


def oss_lister(client: OssClient) -> S3Lister:
    """A lister for the store of a client."""
    return S3Lister(ListingRequests(client), client.access.uri)
