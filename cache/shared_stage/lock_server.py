"""Hands locks to the readers of a shared stage, over a Unix socket in it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from podferry.cache.shared_stage.shared_stage import SharedStage
from podferry.contract.shared_stage import PROGRESS_SECONDS, READS, SOCKET_FILE, STARTS, Handover

SOCKET_MODE = 0o666
"""To connect is to write: readers have any user."""
ASK_SECONDS = 5.0
"""For what a reader says after it has connected."""
BACKLOG = 256
"""Pods that start at once on a node: Kubernetes allows 110 by default."""


@asynccontextmanager
async def serving_locks(stage: SharedStage) -> AsyncIterator[None]:
    """Serve the locks of a stage while the block runs."""
    with _listen(stage.place.directory) as listener:
        accepting = asyncio.create_task(_accept(listener, stage))
        try:
            yield
        finally:
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)
            (stage.place.directory / SOCKET_FILE).unlink(missing_ok=True)


def _listen(directory: Path) -> socket.socket:
    """Listen by way of the directory's descriptor: the path of a Unix socket has 107 bytes at most."""
    (directory / SOCKET_FILE).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    descriptor = os.open(directory, os.O_PATH)
    try:
        listener.bind(f"/proc/self/fd/{descriptor}/{SOCKET_FILE}")
    finally:
        os.close(descriptor)
    (directory / SOCKET_FILE).chmod(SOCKET_MODE)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


async def _accept(listener: socket.socket, stage: SharedStage) -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        while True:
            channel, _ = await loop.sock_accept(listener)
            group.create_task(_serve(channel, stage))


async def _serve(channel: socket.socket, stage: SharedStage) -> None:
    """Report progress until the stage is complete, then hand a lock over.

    Who has mounted a version already gets a lock at once: the stage may be filled with another dataset now.
    """
    with channel, suppress(OSError):  # the reader has ended, or takes what is there without a lock
        channel.setblocking(False)
        asked = await _asked(channel)
        if asked == READS:
            _send_lock(channel, stage, Handover(stage.uri), starts=False)
            return
        while stage.complete is None and stage.failure is None:
            filling = stage.filling
            channel.send(_encoded(Handover(stage.uri, bytes=filling.bytes, bytes_done=filling.bytes_done)))
            await stage.wait(PROGRESS_SECONDS)
        _finish(channel, stage, starts=asked == STARTS)


async def _asked(channel: socket.socket) -> bytes:
    """What a reader says; nothing for one that does not say whether it has mounted the dataset."""
    try:
        async with asyncio.timeout(ASK_SECONDS):
            return await asyncio.get_running_loop().sock_recv(channel, len(STARTS))
    except TimeoutError:
        return b""


def _finish(channel: socket.socket, stage: SharedStage, *, starts: bool) -> None:
    if stage.complete is None:
        problems = stage.failure.problems if stage.failure is not None else ()
        channel.send(_encoded(Handover(stage.uri, problems=problems)))
        return
    manifest = stage.complete.document.manifest
    message = Handover(stage.uri, manifest.digest, manifest.files, manifest.bytes, manifest.bytes)
    _send_lock(channel, stage, message, starts=starts)


def _send_lock(channel: socket.socket, stage: SharedStage, message: Handover, *, starts: bool) -> None:
    lock = stage.make_lock(starts=starts)
    try:
        socket.send_fds(channel, [_encoded(message)], [lock])
    finally:
        os.close(lock)


def _encoded(message: Handover) -> bytes:
    return msgspec.json.encode(message)
