"""Confirms, after the last byte of a file has arrived, that the server still has the version that was listed.

The tag in a response's head is that of the file as it was opened. A server that reads on while the file is
overwritten in place, at its old size, sends bytes of both versions without an error, as nginx does. A write
changes the tag before its first byte can be read. So if a request that is sent after the last byte finds the
old tag, all bytes are of that version.

Many of these requests wait at the server at a time, as those of the listing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from podferry.contract.manifest import Entry
from podferry.storage.errors.translate import StoreLocation, check_listed, translating
from podferry.storage.http.heads import HeadRequests
from podferry.storage.in_parallel import for_each_limited
from podferry.storage.request_builder import RequestBuilder
from podferry.storage.store import Confirm
from podferry.storage.timeouts_and_limits import Limits

Stat = Callable[[str], Awaitable[Entry]]


@asynccontextmanager
async def confirming(
    location: StoreLocation, builder: RequestBuilder | None, limits: Limits, stat: Stat
) -> AsyncIterator[Confirm]:
    """See `podferry.storage.store.ConfirmingStore.confirming`.

    Args:
        location: For messages.
        builder: Of the store; None if only its own client can send requests.
        limits: Timeouts, and the number of connections.
        stat: The store's own, for what no plain response confirms.
    """

    async def check(entry: Entry) -> None:
        check_listed(location, await stat(entry.name), entry.tag, entry.size)

    async def confirm_each(entries: Sequence[Entry]) -> None:
        await for_each_limited(entries, check, limits.worker_threads)

    if builder is None:
        yield confirm_each
        return
    async with HeadRequests(builder, limits.worker_threads, limits.stall_seconds, pages=True) as heads:

        async def confirm(entries: Sequence[Entry]) -> None:
            await builder.prepare(entries)  # a token may have expired since
            with translating(location, entries[0].name, answered=True):
                found = await heads.entries([entry.name for entry in entries])
            served = {entry.name: entry for entry in found}
            await confirm_each([entry for entry in entries if not _is_same(entry, served.get(entry.name))])

        yield confirm


def _is_same(listed: Entry, served: Entry | None) -> bool:
    """Whether a file is served as it was listed; listings may leave out the quotation marks of a tag."""
    if served is None or served.size != listed.size:
        return False
    return not listed.tag or served.tag.strip('"') == listed.tag.strip('"')
