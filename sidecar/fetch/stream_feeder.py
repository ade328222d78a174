"""Fetches chunks, some of them in parallel, for a thread that reads them in order."""

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
    """Raised in a thread that reads on after the last chunk, or after a failure."""


async def feed(stream: ByteStream, chunks: Iterable[Chunk], reader: asyncio.Future[T], depth: int) -> T:
    """Feed the stream until `reader` has its result, and return it.

    The reader has always ended when this returns: a thread cannot be cancelled, but its stream can end. An
    error of a chunk is raised in the thread.

    Args:
        stream: What the reader reads.
        chunks: Each is created when its fetch starts.
        reader: Work that runs in a thread, or waits for one.
        depth: Number of chunks to fetch in parallel.
    """
    feeding = asyncio.create_task(_feed(stream, iter(chunks), depth))
    try:
        await asyncio.wait({reader})
    finally:
        feeding.cancel()
        await asyncio.wait({reader})
        await asyncio.wait({feeding})
        stream.discard()
        failure = reader.exception()  # retrieved in any case, or asyncio complains
    if isinstance(failure, StoppedError):
        raise failure.__cause__ or failure
    if failure is not None:
        raise failure
    return reader.result()


async def _feed(stream: ByteStream, chunks: Iterator[Chunk], depth: int) -> None:
    stopped = StoppedError()
    fetching = deque(asyncio.create_task(chunk) for chunk in islice(chunks, depth))
    try:
        while fetching:
            stream.put(await fetching[0])
            fetching.popleft()
            fetching.extend(asyncio.create_task(chunk) for chunk in islice(chunks, 1))
        stream.put(END)
    except FerryError as error:
        stream.put(error)
    except Exception as error:  # noqa: BLE001 - a bug: in the thread it would look like a malformed archive
        stopped.__cause__ = error
    finally:
        stream.put(stopped)  # in any case: the thread must not wait forever
        for task in fetching:
            task.cancel()
        for result in await asyncio.gather(*fetching, return_exceptions=True):
            if isinstance(result, memoryview):
                stream.put(result)  # `discard` frees it
