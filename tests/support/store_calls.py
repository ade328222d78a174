"""Calls of a store for tests of its errors, and credentials that servers of the tests accept."""

import asyncio

from podferry.storage.store import WriteMode

KEYS = {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}
PART = 5 << 20


async def listed(store, prefix=""):
    return sorted([entry.name async for entry in store.entries(prefix)])


async def all_calls(store):
    """The error of every call."""

    async def entries():
        return await listed(store)

    calls = [
        entries(),
        store.children(),
        store.stat("a"),
        store.read("a"),
        store.read("a", 1, 2),
        store.write("a", b"x"),
        store.write("a", b"x", WriteMode.CREATE),
        store.write("a", iter([b"x" * PART, b"y"])),
        store.delete(["a"]),
    ]
    return await asyncio.gather(*calls, return_exceptions=True)
