"""Brings chunks in order, some of them fetched ahead, to a thread that reads them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from podferry.contract.errors import FerryError
from podferry.sidecar.fetch.byte_stream import END, ByteStream

T = TypeVar("T")
Chunk = Coroutine[Any, Any, memoryview]


class StoppedError(Exception):
    """Meets a thread that reads on although nothing more comes."""


async def feed(source: ByteStream, chunks: Iterable[Chunk], reading: asyncio.Future[T], ahead: int) -> T:
    """What `reading` returns, once it has read what it wants of the chunks.

    It has ended when this returns, however that comes about: a thread cannot be cancelled, but it can be told
    that nothing more comes. What fails in a chunk fails in the thread.

    Args:
        source: What it reads.
        chunks: Made when it is their turn to be fetched.
        reading: Work that runs in a thread, or waits for one.
        ahead: Chunks that are fetched at once.
    """
    feeding = asyncio.create_task(_feed(source, iter(chunks), ahead))
    try:
        await asyncio.wait({reading})
    finally:
        feeding.cancel()
        await asyncio.wait({reading})
        await asyncio.wait({feeding})
        source.drop()
        failure = reading.exception()  # looked at in any case, or asyncio complains
    if failure is not None:
        raise failure
    return reading.result()


async def _feed(source: ByteStream, chunks: Iterator[Chunk], ahead: int) -> None:
    fetching = deque(asyncio.create_task(chunk) for chunk in islice(chunks, ahead))
    try:
        while fetching:
            source.put(await fetching[0])
            fetching.popleft()
            fetching.extend(asyncio.create_task(chunk) for chunk in islice(chunks, 1))
        source.put(END)
    except FerryError as error:
        source.put(error)
    finally:
        source.put(StoppedError())  # whatever it was, the thread must not wait for ever
        for task in fetching:
            task.cancel()
        for came in await asyncio.gather(*fetching, return_exceptions=True):
            if isinstance(came, memoryview):
                source.put(came)  # to be given back with what nobody reads
