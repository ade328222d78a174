"""What an engine declares: the schemes that it opens, and what it can do at each.

A package adds a scheme to podferry with an `Engine` that it names as an entry point of the group
`podferry.engines`. `podferry.storage.engines` finds it there.
"""

from __future__ import annotations

import msgspec


class Scheme(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine can do at one scheme. A test compares it with the stores that the engine opens.

    Attributes:
        names: The scheme and its aliases: `("s3", "s3a")`.
        page: Of the documentation: `s3` is docs/stores/s3.md; empty for those without one.
        tested_on: The servers that the contract suite runs on; an imitation is named one.
        credentials: Their names in the environment or in a Secret.
        ranges: Whether a part of a file can be read without what is before it.
        checksums: Those that the store has and that are compared after a download; empty for none.
        writable: Whether checkpoints and outputs may be stored there.
        exclusive_create: See `Store.exclusive_create`.
        resumed_uploads: Whether a large upload resumes after a restart: `Store.multipart`.
        server_copy: See `Store.server_copy`.
        refused_characters: Those that the store cannot keep in a name: a write of one is refused.
        connection_pool: Whether files are fetched by podferry's own connections: `Store.request_builder`.
    """

    names: tuple[str, ...]
    page: str = ""
    tested_on: str = ""
    credentials: tuple[str, ...] = ()
    ranges: bool = True
    checksums: str = ""
    writable: bool = True
    exclusive_create: bool = False
    resumed_uploads: bool = False
    server_copy: bool = False
    connection_pool: bool = False
    refused_characters: str = ""


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """A way to open stores.

    Attributes:
        name: Of podferry's own engines also the value of `?engine=` in a URI.
        schemes: What it opens.
        store: `module:name` of the class or function that opens a `Store` from a URI, a `StoreConfig` and
            `Limits`. It is imported when a URI is opened.
        requires: Modules that must be installed.
        extra: podferry's extra that installs them; empty for an engine of another package.
    """

    name: str
    schemes: tuple[Scheme, ...]
    store: str
    requires: tuple[str, ...] = ()
    extra: str = ""

    @property
    def scheme_names(self) -> tuple[str, ...]:
        """All schemes that it opens, with aliases."""
        return tuple(name for scheme in self.schemes for name in scheme.names)
