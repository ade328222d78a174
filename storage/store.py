"""What every store can do: six calls, and what is atomic about them; some write in parts, too.

A store is opened at a URI; every name below is relative to it, with `/` between its parts and none at its
ends. All calls are safe to run concurrently. Every call may raise

* `BucketNotFound`, `AccessDenied`, `CredentialsMissing`: permanent;
* `Throttled`, `Unavailable`: temporary, after the engine's own retries have been spent.

No vendor's exception passes: `podferry.storage.errors.translate` turns each into the error tree.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

import msgspec

from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.multipart import MultipartStore
from podferry.storage.request_builder import RequestBuilder

NO_CREDENTIALS: Mapping[str, str] = MappingProxyType({})

Body = bytes | Iterable[bytes]
"""What is written: one buffer, or chunks that are read once, in order, while they are sent."""


class WriteMode(enum.Enum):
    """What a write does where the name is taken."""

    OVERWRITE = "overwrite"
    """Replace it. Readers see the old object or the new one, never a mixture."""
    CREATE = "create"
    """Raise `AlreadyExists` and leave it. Of several writers at once exactly one succeeds where the engine's
    `exclusive_create` says so. The body is sent in one request: for small objects, such as commits."""


class StoreConfig(msgspec.Struct, frozen=True):
    """How to reach a store, beyond its URI.

    Attributes:
        endpoint: URL of the service, where it is not the vendor's own.
        region: The vendor's name of the region.
        credentials: What a Secret or the environment holds, under its usual names
            (`AWS_ACCESS_KEY_ID`, `AZURE_STORAGE_ACCOUNT_KEY`, …). Never printed.
        reload_credentials: Reads them anew, where they may be exchanged meanwhile, as a Secret's are.
    """

    endpoint: str | None = None
    region: str | None = None
    credentials: Mapping[str, str] = NO_CREDENTIALS
    reload_credentials: Callable[[], Mapping[str, str]] | None = None

    def __repr__(self) -> str:
        held = ", ".join(sorted(self.credentials)) or "none"
        return f"StoreConfig(endpoint={self.endpoint!r}, region={self.region!r}, credentials of: {held})"


class Store(Protocol):
    """A location that holds objects."""

    @property
    def uri(self) -> Uri:
        """Where it is opened."""

    @property
    def exclusive_create(self) -> bool:
        """Whether `WriteMode.CREATE` is atomic under a race; else it checks, then writes."""

    @property
    def multipart(self) -> MultipartStore | None:
        """Writes large objects in parts that survive a restart; None where the store cannot."""

    @property
    def request_builder(self) -> RequestBuilder | None:
        """Which HTTP requests fetch its objects; None where only the engine can say or reach it."""

    def entries(self, prefix: str = "") -> AsyncIterator[Entry]:
        """All objects below `prefix`, which is a directory: `a` yields `a/b`, neither `ab` nor `a` itself.

        Names stay relative to the store, not to `prefix`. The order is the engine's. An empty prefix yields
        nothing; directory markers (empty objects whose key ends with `/`) are left out.
        """

    async def children(self, prefix: str = "") -> list[str]:
        """Sorted names directly below `prefix`, relative to it; those that hold others end with `/`."""

    async def stat(self, name: str) -> Entry:
        """The object's size and tag.

        Raises:
            NotFound: No such object; a prefix is none.
        """

    async def read(
        self, name: str, start: int = 0, length: int | None = None, tag: str = "", size: int | None = None
    ) -> memoryview:
        """`length` bytes from `start`, or all to the end; exactly as many as asked.

        Raises:
            NotFound: No such object.
            Changed: `tag` was given and the object has another one now; or `size`, and the whole object has
                another, whatever was asked for of it.
            Corrupt: The object ends before `start + length`.
        """

    async def write(self, name: str, body: Body, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        """Write an object, visible only when whole: a failure, or a body that raises, leaves no trace.

        Memory stays constant in the size of a chunked body. What a chunked body raises reaches the caller.

        Raises:
            AlreadyExists: `mode` is CREATE and the name is taken.
        """

    async def delete(self, names: Iterable[str]) -> None:
        """Delete objects; those that do not exist are passed over."""

    async def close(self) -> None:
        """Give back connections. A closed store is not used again."""
