"""Writes a dataset into the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.in_parallel import for_each_limited
from podferry.storage.store import StoreConfig

AT_ONCE = 8
"""Requests at once: more do not help one process."""


def put_objects(
    uri: str,
    environ: Mapping[str, str],
    objects: Mapping[str, bytes],
    advance: Callable[[int], None] = lambda _: None,
) -> int:
    """Write objects by name below `uri`; `advance` gets how many more are there. Returns the bytes written.

    Raises:
        FerryError: The store's.
    """
    asyncio.run(_put(uri, environ, objects, advance))
    return sum(map(len, objects.values()))


async def _put(
    uri: str, environ: Mapping[str, str], objects: Mapping[str, bytes], advance: Callable[[int], None]
) -> None:
    store = open_store(parse_uri(uri), StoreConfig(credentials=environ))

    async def write(name: str) -> None:
        await store.write(name, objects[name])
        advance(1)

    try:
        await for_each_limited(objects, write, AT_ONCE)
    finally:
        await store.close()
