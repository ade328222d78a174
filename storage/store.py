"""The interface of all stores: six calls and what is atomic about them.

Some stores can do more: take multipart uploads, and copy objects themselves.

A store is opened at a URI. Names are relative to it, with `/` between their parts and at neither end. All
calls may run in parallel. Every call may raise

* `BucketNotFound`, `AccessDenied`, `CredentialsMissing`: permanent;
* `Throttled`, `Unavailable`: temporary, after the engine's own retries.

Callers never see a vendor's exception: `podferry.storage.errors.translate` turns each into the error tree.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import msgspec

from podferry.contract.location_guards import Guards
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.multipart import MultipartStore
from podferry.storage.network.settings import DIRECT, Network
from podferry.storage.request_builder import RequestBuilder
from podferry.storage.server_copy import ServerCopy

NO_CREDENTIALS: Mapping[str, str] = MappingProxyType({})

Body = bytes | Iterable[bytes]
"""The body of a write: one buffer, or chunks that are read once, in order, while they are sent."""


class WriteMode(enum.Enum):
    """What a write does if the name is taken."""

    OVERWRITE = "overwrite"
    """Replace the object. Readers see the old one or the new one, never a mixture."""
    CREATE = "create"
    """Raise `AlreadyExists` and keep the object. Of several concurrent writers exactly one succeeds if the
    engine has `exclusive_create`. The body is sent in one request: for small objects, such as commits."""


class StoreConfig(msgspec.Struct, frozen=True):
    """How to reach a store, in addition to its URI.

    Attributes:
        endpoint: URL of the service; None for the vendor's own.
        region: The vendor's name of the region, or None.
        credentials: Of a Secret or the environment, under their usual names (`AWS_ACCESS_KEY_ID`,
            `AZURE_STORAGE_ACCOUNT_KEY`, …). Never printed.
        reload_credentials: Reads them again if they may change, as a Secret's may; or None.
        network: Trusted certificates and proxies.
        allowed_sources: What the data that a manifest names must match, and other servers that a web server
            redirects to; empty to allow all.
    """

    endpoint: str | None = None
    region: str | None = None
    credentials: Mapping[str, str] = NO_CREDENTIALS
    reload_credentials: Callable[[], Mapping[str, str]] | None = None
    network: Network = DIRECT
    allowed_sources: Guards = ()

    def __repr__(self) -> str:
        names = ", ".join(sorted(self.credentials)) or "none"
        return f"StoreConfig(endpoint={self.endpoint!r}, region={self.region!r}, credentials of: {names})"


class Store(Protocol):
    """A bucket, or the part of it below a prefix."""

    @property
    def uri(self) -> Uri:
        """Names are relative to it."""

    @property
    def exclusive_create(self) -> bool:
        """Whether `WriteMode.CREATE` is atomic; if not, it checks and then writes."""

    @property
    def multipart(self) -> MultipartStore | None:
        """Multipart uploads that survive a restart, or None if the store has none."""

    @property
    def server_copy(self) -> ServerCopy | None:
        """Copies within the store, or None if it has none, or none that are known to be complete."""

    @property
    def request_builder(self) -> RequestBuilder | None:
        """Builds the HTTP requests that fetch objects, or None if only the engine can fetch them."""

    def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """All objects below the directory `prefix`: `a` yields `a/b`, but neither `ab` nor `a` itself.

        Names are relative to the store, not to `prefix`. The order is the engine's. A prefix without objects
        yields nothing; directory markers (empty objects whose key ends with `/`) are skipped.
        """

    async def children(self, prefix: str = "") -> list[str]:
        """Sorted names directly below `prefix`, relative to it; those of directories end with `/`."""

    async def stat(self, name: str) -> Entry:
        """The object's size and tag.

        Raises:
            NotFound: There is no such object; a prefix is not an object.
        """

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """Exactly `length` bytes from `start`, or all to the end.

        Raises:
            NotFound: There is no such object.
            Changed: The object's tag is not `tag`, or its complete size not `size`, if given.
            Corrupt: The object ends before `start + length`.
        """

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """Write an object, visible only when complete: a failure, or a body that raises, leaves nothing.

        The size of a chunked body does not affect memory. What a chunked body raises reaches the caller.

        Raises:
            AlreadyExists: `mode` is CREATE and the name is taken.
        """

    async def delete(self, names: Iterable[str]) -> None:
        """Delete objects; missing ones are ignored."""

    async def close(self) -> None:
        """Close connections. A closed store must not be used again."""


Receive = Callable[[memoryview, int], object]
"""Takes bytes of a range and their position in it. The buffer is reused afterwards."""


@runtime_checkable
class BundlingStore(Protocol):
    """A store that sends many small files in one response, if its request builder asks for a bundle.

    See `podferry.contract.bundle`.
    """

    def position_of(self, entry: Entry) -> int | None:
        """Where exactly this file is among those that can be bundled; None if it cannot."""

    def bundle_of(self, positions: Sequence[int], size: int) -> Entry:
        """What the request builder takes for the object that consists of these files, of `size` bytes in all.

        Args:
            positions: Ascending.
            size: No more than a bundle may have.
        """


Confirm = Callable[[Sequence[Entry]], Coroutine[object, object, None]]
"""Raises `Changed` or `NotFound` unless these files have the size and tag that they were listed with."""


@runtime_checkable
class ConfirmingStore(Protocol):
    """A store that sends a mixture of two versions if a file is overwritten in place meanwhile.

    The head of a response has the tag of the version that its first byte is of. `Store.read` asks for the tag
    again after the last byte; callers that send the requests of `Store.request_builder` themselves have to.
    """

    def confirming(self) -> AbstractAsyncContextManager[Confirm]:
        """Asks whether files are still the listed ones, on connections that stay open for the block."""


@runtime_checkable
class ServerDependentStore(Protocol):
    """A store whose server decides whether it creates exclusively: another server of its scheme may."""

    @property
    def why_not_exclusive(self) -> str:
        """Why `Store.exclusive_create` is false, or empty."""


@runtime_checkable
class StreamingStore(Protocol):
    """A store that passes the bytes of a range on as they arrive. Others collect them: see `Store.read`.

    Attributes:
        stream_bytes: Length of a range that is worth a request of its own, for it cannot be ended for free.
    """

    stream_bytes: int

    async def stream(
        self, name: str, start: int, length: int, tag: str, size: int | None, receive: Receive
    ) -> None:
        """Call `receive` with the bytes of a range, in order, from one thread at a time, which may be any.

        They count only when this returns: an error, which `Store.read` lists, may follow the last byte. What
        `receive` raises ends the call, and is raised here if it is a `FerryError`.
        """
