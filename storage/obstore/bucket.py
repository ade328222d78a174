"""One bucket behind an obstore client: names and entries, readiness, and what its errors mean."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError, GenericError

from podferry.contract.errors import FerryError, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.azure.endpoint import AZURE_SCHEMES
from podferry.storage.errors.kinds import error_kind
from podferry.storage.errors.obstore_failure import foreign_page
from podferry.storage.errors.plain_http import requires_tls
from podferry.storage.errors.translate import is_from_role, store_error, translate, wrong_region
from podferry.storage.errors.vendor_fields import vendor_fields_of
from podferry.storage.object_names import join
from podferry.storage.obstore.client import obstore_client
from podferry.storage.s3.endpoint import s3_access
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits

if TYPE_CHECKING:
    from obstore import ListStream, ObjectMeta

OBSTORE_ERRORS = (BaseError, FileNotFoundError, ValueError, OSError)
"""What obstore raises: its own tree, and two builtins that it documents."""


class ObstoreBucket:
    """A bucket, or the part of it below the URI's key.

    Once a request has succeeded, `exists` is true: then a missing object does not mean a missing bucket.
    """

    def __init__(self, uri: Uri, config: StoreConfig, limits: Limits) -> None:
        client = obstore_client(uri, config, limits)
        self._config, self._limits = config, limits
        self.uri, self.store, self.location = uri, client.store, client.location
        self.exists = False
        self._has_no_keys = bool(client.metadata_endpoint)
        self._metadata_endpoint, self._token_file = client.metadata_endpoint, client.token_file
        self._load_credentials = client.load_credentials
        self._metadata_seconds = limits.metadata_seconds

    def key(self, name: str) -> str:
        """The key of a name."""
        if "\\" in name and self.uri.scheme in AZURE_SCHEMES:
            # Azure stores it as a slash, so listings would return another name.
            raise store_error("name", self.location, name, evidence="Azure stores a backslash as a slash")
        return join(self.uri.key, name)

    def entry(self, item: ObjectMeta) -> Entry:
        """The entry of a listed object."""
        name = item["path"][len(self.uri.key) + 1 :] if self.uri.key else item["path"]
        # Azure omits the quotation marks in listings, and sends them for a single object.
        tag = item["e_tag"] or ""
        return Entry(name, item["size"], f'"{tag}"' if tag.isalnum() else tag)

    async def prepare(self) -> None:
        """Make sure that obstore finds credentials.

        The metadata service is connected to if it has them: outside a cloud it never responds.
        """
        if self._load_credentials is not None:
            await asyncio.to_thread(self._load_credentials)  # what obstore says of a failure names no reason
        if self._token_file is not None:
            with suppress(OSError):  # the last token may still be valid
                self._token_file.refresh()
        if not self._metadata_endpoint:
            return
        address = urlsplit(self._metadata_endpoint)
        try:
            async with asyncio.timeout(self._metadata_seconds):
                _, writer = await asyncio.open_connection(address.hostname, address.port or 80)
        except OSError as error:  # TimeoutError is one
            evidence = f"no response from {address.netloc}"
            raise await self._without_keys() or store_error(
                "credentials", self.location, evidence=evidence
            ) from error
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        self._metadata_endpoint = ""

    @asynccontextmanager
    async def call(self, name: str = "", operation: str = "") -> AsyncIterator[None]:
        """Prepare for one call of obstore, and translate its errors."""
        await self.prepare()
        try:
            yield
        except OBSTORE_ERRORS as error:
            raise await self.translated(error, name, operation) from error
        self.exists = True

    async def listing_error(self, error: Exception, prefix: str = "") -> FerryError:
        """The error of a listing, for the user."""
        return await self.translated(error, prefix, "listed")

    async def translated(self, error: Exception, name: str = "", operation: str = "") -> FerryError:
        """The error for the user. If an object is missing, this checks whether its bucket exists."""
        if page := foreign_page(str(error)):
            return self._not_the_service(name, page)
        found = translate(error, self.location, name, operation, answered=self.exists)
        fields = vendor_fields_of(error)
        kind = error_kind(fields)
        if is_from_role(fields, self.location):
            return await self._without_keys() or found
        if kind == "missing" and not self.exists:
            return await self._problem() or found if name else store_error("bucket", self.location)
        if kind in ("region", "invalid") and not fields.region:
            return await self._elsewhere() or found
        if not self.exists and await requires_tls(self.location, fields):
            return store_error("tls port", self.location, name)
        return found

    async def _without_keys(self) -> FerryError | None:
        """The error for a profile without keys, for which the metadata service was asked, or None."""
        if not self._has_no_keys:
            return None
        module = importlib.import_module("podferry.storage.credentials.profile_error")
        variables = self._config.credentials
        found: FerryError | None = await asyncio.to_thread(module.profile_error, self.location, variables)
        return found

    def _not_the_service(self, name: str, page: str) -> FerryError:
        """The error for a page in the place of a response: an outage if the service has answered before."""
        kind = "not azure" if self.uri.scheme in AZURE_SCHEMES else "not s3"
        found = store_error(kind, self.location, name, page)
        return Unavailable(*found.problems) if self.exists else found

    async def _elsewhere(self) -> FerryError | None:
        """The error for a bucket in another region than the configured one, or None."""
        if self.uri.scheme in AZURE_SCHEMES:
            return None
        module = importlib.import_module("podferry.storage.s3.bucket_region")
        access = s3_access(self.uri, self._config)
        region = await module.bucket_region(access, self._limits)
        return wrong_region(self.location, region) if region not in ("", access.region) else None

    async def _problem(self) -> FerryError | None:
        """What is wrong with the bucket, or None.

        A denied listing proves nothing: reading may be allowed. One that shows a key
        which obstore refuses has reached the bucket.
        """
        try:
            await next_page(obstore.list(self.store, self.uri.key or None, chunk_size=1))
        except OBSTORE_ERRORS as error:
            if page := foreign_page(str(error)):
                return self._not_the_service("", page)
            kind = error_kind(vendor_fields_of(error))
            if kind == "missing":
                return store_error("bucket", self.location)
            if kind != "key":
                return None if kind == "denied" else translate(error, self.location)
        self.exists = True
        return None


async def next_page(pages: ListStream[Sequence[ObjectMeta]]) -> Sequence[ObjectMeta]:
    """The next objects of a listing, or none at its end. With a default `anext` fails on obstore's."""
    try:
        return await anext(pages)
    except StopAsyncIteration:
        return ()


def is_unanswered(error: Exception) -> bool:
    """Whether obstore reports a failure without saying what the server responded, if it did."""
    return type(error) is GenericError and not vendor_fields_of(error).status
