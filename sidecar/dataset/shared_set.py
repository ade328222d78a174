"""Reads a dataset where its holder keeps it, without a copy. Contract: `podferry.contract.shared_stage`."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from podferry.contract.cache_api import FORMAT
from podferry.contract.dataset_reference import Reference
from podferry.contract.errors import Changed, Corrupt, FormatTooNew, Problem, Refused, Unavailable
from podferry.contract.shared_stage import (
    FILES_DIR,
    MAX_MESSAGE_BYTES,
    PROGRESS_SECONDS,
    READS,
    RECORD_FILE,
    SOCKET_FILE,
    STARTS,
    Handover,
    SharedRecord,
)
from podferry.contract.versioned_json import decode_document
from podferry.sidecar.staging.file_ops import list_files

log = structlog.get_logger(__name__)
SILENCE_SECONDS = 10 * PROGRESS_SECONDS
"""Without a message, until a holder counts as gone."""
RELOCK_SECONDS = 1.0
"""Between attempts to get the lock of a dataset that was left complete: a new holder waits longer than this
before it changes anything."""


class SharedSet:
    """One dataset in a shared stage, as its readers see it.

    1. `open`, again while no holder responds and the stage is not complete.
    2. `keep`, in parallel with its use.
    3. `close`.

    Args:
        directory: A read-only mount of the stage.
        wanted: The dataset, perhaps frozen; None for whatever the holder has.
    """

    def __init__(self, directory: Path, wanted: Reference | None = None) -> None:
        self.directory, self._wanted = directory, wanted
        self.lock: int | None = None

    @property
    def files(self) -> Path:
        """Where the dataset is read."""
        return self.directory / FILES_DIR

    async def open(self, on_filling: Callable[[Handover], None] = lambda message: None) -> Handover:
        """Wait until the dataset is complete, and lock it.

        Raises:
            Unavailable: No holder responds, and the stage is not complete.
            Refused: The holder cannot fetch the dataset.
            Changed: It is another dataset, or another version than the frozen reference names.
        """
        try:
            message = await self._lock(STARTS, on_filling)
        except (OSError, TimeoutError) as error:
            message = await asyncio.to_thread(self._left_complete, error)
            log.warning("no holder responds: the shared dataset is read as it was left", reason=str(error))
        if self._wanted is not None and (changed := _difference(message, self._wanted)):
            self.close()
            raise Changed(changed)
        return message

    async def keep(self) -> None:
        """Get the lock from a new holder, which looks for readers before it changes anything."""
        while self.lock is None:
            try:
                await self._lock(READS)
            except (OSError, TimeoutError, Refused):
                await asyncio.sleep(RELOCK_SECONDS)

    def close(self) -> None:
        """Release the lock."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    async def _lock(
        self, asked: bytes, on_filling: Callable[[Handover], None] = lambda message: None
    ) -> Handover:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
            channel.setblocking(False)
            _connect(channel, self.directory)
            channel.send(asked)
            while True:
                message, descriptors = await _received(channel)
                if message.problems:
                    raise Refused(*message.problems)
                if descriptors:
                    self.lock = descriptors[0]
                    return message
                on_filling(message)

    def _left_complete(self, error: BaseException) -> Handover:
        """What the last holder has left, if all files are there; raises `Unavailable` otherwise."""
        try:
            data = (self.directory / RECORD_FILE).read_bytes()
            record = decode_document(data, SharedRecord, FORMAT, RECORD_FILE)
            found = dict(list_files(str(self.files)))
        except (OSError, Corrupt, FormatTooNew):
            found = None
        manifest = record.held.manifest if found is not None else None
        if manifest is None or found != {entry.name: entry.size for entry in manifest.entries}:
            what = f"the shared dataset at {self.directory} has no holder that responds"
            remedy = "Start its holder, or see in the holder's log why it does not run"
            raise Unavailable.of(what, str(error) or type(error).__name__, remedy) from error
        return Handover(record.uri, manifest.digest, manifest.files, manifest.bytes, manifest.bytes)


def _difference(message: Handover, wanted: Reference) -> Problem | None:
    """How a dataset differs from what is wanted: its cache may have got another source since admission."""
    if message.uri != str(wanted.uri):
        what, remedy = (
            "the cache shares another dataset by now",
            "Create the pod again: it is admitted as it is",
        )
        return Problem(what, f"{message.uri}, not {wanted.uri}", remedy)
    if wanted.digest not in {None, message.digest}:
        what = "the shared dataset is another version than the reference names"
        return Problem(what, f"{message.digest}, not {wanted.digest}", "Freeze the cache's dataset again")
    return None


def _connect(channel: socket.socket, directory: Path) -> None:
    """Connect by way of the directory's descriptor: the path of a Unix socket has 107 bytes at most."""
    descriptor = os.open(directory, os.O_PATH)
    try:
        channel.connect(f"/proc/self/fd/{descriptor}/{SOCKET_FILE}")
    finally:
        os.close(descriptor)


async def _received(channel: socket.socket) -> tuple[Handover, list[int]]:
    """The next message, with its descriptors; raises `OSError` or `TimeoutError` if there is none."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(channel, ready.set)
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            await ready.wait()
    finally:
        loop.remove_reader(channel)
    data, descriptors, _, _ = socket.recv_fds(channel, MAX_MESSAGE_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
    if not data:
        raise ConnectionResetError("the holder has ended")
    return msgspec.json.decode(data, type=Handover), descriptors
