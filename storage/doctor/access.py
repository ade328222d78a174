"""Checks of what credentials allow: listing, reading, writing, exclusive commits."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from itertools import count

from podferry.contract.errors import AlreadyExists, FerryError, NotFound
from podferry.contract.manifest import Entry
from podferry.contract.quantity import format_bytes
from podferry.storage.doctor.finding import Finding, Outcome, failed, ok, skipped
from podferry.storage.listing.single_object import stat_file
from podferry.storage.store import ServerDependentStore, Store, WriteMode
from podferry.storage.timeouts_and_limits import MIB

SAMPLE_FILES, SAMPLE_SECONDS, SAMPLE_BYTES = 64, 3.0, 256 * MIB
"""What is read to measure throughput, whichever ends first."""
READERS = 8
"""Parallel reads: more than any store needs to show an order of magnitude."""
READ_BYTES = 8 * MIB
"""Of one read of that sample."""
RIVALS = 8
"""Writers that race for one name."""
PROBE = b"podferry doctor\n"


async def list_some(store: Store) -> tuple[Finding, list[Entry]]:
    """List the location, and return the first files below it."""
    started = time.monotonic()
    try:
        names = await store.children()
        found = await _first(store) if names else []
    except FerryError as error:
        return failed("list", error), []
    if not names:
        remedy = "Check bucket and prefix, unless checkpoints will be the first files there"
        return Finding("list", Outcome.LIMITED, "nothing is there", remedy), []
    milliseconds = (time.monotonic() - started) * 1000
    return ok("list", f"{len(names):,} names at the top, in {milliseconds:.0f} ms"), found


async def stat_single(store: Store, name: str) -> tuple[Finding, list[Entry]] | None:
    """The finding for a URI of one object, or None if there is none."""
    try:
        entry = await stat_file(store, name)
    except FerryError:
        return None
    return ok("list", f"one file of {format_bytes(entry.size)}"), [entry]


async def _first(store: Store) -> list[Entry]:
    found: list[Entry] = []
    entries = store.entries()
    async with aclosing(entries) as listed:  # type: ignore[type-var] # every engine's is a generator
        async for entry in listed:
            found.append(entry)
            if len(found) == SAMPLE_FILES:
                break
    return found


async def read_some(store: Store, found: list[Entry]) -> AsyncIterator[Finding]:
    """Read the first file's first bytes, then as much as a few seconds allow."""
    if not found:
        yield skipped("read", "there is no file to read")
        yield skipped("throughput", "there is no file to read")
        return
    entry, started = found[0], time.monotonic()
    try:
        data = await store.read(entry.name, 0, min(entry.size, MIB), entry.tag, entry.size)
        milliseconds = (time.monotonic() - started) * 1000
        yield ok("read", f"{format_bytes(len(data))} of {entry.name} in {milliseconds:.0f} ms")
        yield await _throughput(store, found)
    except FerryError as error:
        yield failed("read", error)


async def _throughput(store: Store, found: list[Entry]) -> Finding:
    """With the engine's own client: the agent's connection pool is faster where the table says so."""
    pieces = [
        (entry, start, min(READ_BYTES, entry.size - start))
        for entry in found
        for start in range(0, entry.size, READ_BYTES)
    ]
    taken, number, started = 0, count(), time.monotonic()

    async def reader() -> None:
        nonlocal taken
        while (index := next(number)) < len(pieces) and taken < SAMPLE_BYTES:
            if time.monotonic() - started > SAMPLE_SECONDS:
                return
            entry, start, length = pieces[index]
            data = await store.read(entry.name, start, length, entry.tag, entry.size)
            taken += len(data)

    await asyncio.gather(*(reader() for _ in range(READERS)))
    seconds = time.monotonic() - started
    rate = format_bytes(int(taken / max(seconds, 1e-6)))
    return ok(
        "throughput", f"{rate} per second: {format_bytes(taken)} in {seconds:.2f} s, {READERS} at a time"
    )


async def write_some(store: Store) -> AsyncIterator[Finding]:
    """Write a small object of an unused name, race for another, and delete both."""
    name = f".podferry-doctor-{secrets.token_hex(8)}"
    names = [name, f"{name}-commit"]
    try:
        await store.write(name, PROBE)
        if bytes(await store.read(name)) != PROBE:
            yield Finding("write", Outcome.FAILED, "what was read is not what was written", "Check the store")
            return
        yield ok("write", f"{len(PROBE)} bytes written and read")
        yield await _race(store, names[1])
        await store.delete(names)
        yield await _deleted(store, names)
    except FerryError as error:
        yield failed("write", error)
        with suppress(FerryError):
            await store.delete(names)


async def _race(store: Store, name: str) -> Finding:
    ended = await _rivals(store, name) if store.exclusive_create else []
    if not store.exclusive_create:  # some servers announce what they do not support
        reason = store.why_not_exclusive if isinstance(store, ServerDependentStore) else ""
        measured = f"the store cannot create exclusively{reason and f': {reason}'}"
        remedy = "Let one training at a time write to a lineage"
        return Finding("exclusive commit", Outcome.LIMITED, measured, remedy)
    others = [one for one in ended if one is not None and not isinstance(one, AlreadyExists)]
    if others:
        raise others[0]
    winners = ended.count(None)
    if winners == 1:
        return ok("exclusive commit", f"1 of {RIVALS} writers of one name succeeded")
    measured = f"{winners} of {RIVALS} writers of one name succeeded"
    remedy = "Use another destination, or one training at a time: two could overwrite each other's commits"
    return Finding("exclusive commit", Outcome.FAILED, measured, remedy)


async def _rivals(store: Store, name: str) -> list[BaseException | None]:
    writes = (store.write(name, PROBE, WriteMode.CREATE) for _ in range(RIVALS))
    return await asyncio.gather(*writes, return_exceptions=True)


async def _deleted(store: Store, names: list[str]) -> Finding:
    left = []
    for name in names:
        with suppress(NotFound):
            await store.stat(name)
            left.append(name)
    if not left:
        return ok("delete", "what was written is gone")
    remedy = "Allow deleting, which keep-remote needs, and remove them"
    return Finding("delete", Outcome.LIMITED, f"still there: {', '.join(left)}", remedy)
