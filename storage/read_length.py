"""How many bytes a read has to request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from podferry.contract.manifest import Entry
from podferry.storage.errors.translate import StoreLocation, check_listed, too_short


async def length_to_request(
    location: StoreLocation,
    stat: Callable[[str], Awaitable[Entry]],
    name: str,
    start: int,
    length: int | None,
    listed: tuple[str, int | None],
) -> int | None:
    """The length for a request, 0 if there is nothing to request, or None for the complete object.

    No request can ask for zero bytes, and none for the rest in a way that shows whether `start` is past the
    end: then the object's size decides. Arguments as of `Store.read`; `listed` is its tag and size.

    Raises:
        Changed: The object is not the listed one.
        Corrupt: It ends before the range.
    """
    if start == 0 if length is None else length > 0:
        return length
    found = await stat(name)
    check_listed(location, found, *listed)
    if start + (length or 0) > found.size:
        raise too_short(location, name, start, length, f"{found.size} bytes")
    return found.size - start if length is None else length
