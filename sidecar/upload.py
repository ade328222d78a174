"""Sends a pinned checkpoint and commits it: data first, the commit last, or nothing at all.

The folder's name is a fingerprint of the content, taken in a first pass. The second pass, which sends, takes
it again and lets the last chunk go only if both agree: an object below a folder always holds just the bytes
that the folder's name promises, whatever happened to the file meanwhile.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import msgspec
import stamina
import structlog
import xxhash

from podferry.contract.commit import Commit, CommittedFile, checkpoint_folder
from podferry.contract.errors import Changed, TemporaryError
from podferry.sidecar.committer import Committer
from podferry.sidecar.complete import Candidate
from podferry.sidecar.pin import Pin, Pinned
from podferry.sidecar.snapshot import Identity

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Reading:
    """One file on its way: what was read of it so far, twice digested."""

    path: Path
    identity: Identity
    chunk_bytes: int

    def fingerprint(self) -> str:
        """XXH3-128 of the file, the first pass: 14 GiB/s against 0.7 for SHA-256 on one core.

        Raises:
            Changed: The file is no longer what was pinned.
        """
        digest = xxhash.xxh3_128()
        with self.path.open("rb", buffering=0) as file:
            for chunk in self._chunks(file):
                digest.update(chunk)
            self._check(file)
        return digest.hexdigest()

    def body(self, fingerprint: str, sha256: hashlib._Hash) -> Iterator[bytes]:
        """The file's chunks for sending; fills `sha256` on the way.

        Raises:
            Changed: What was read is not what the first pass read. The last chunk has not been given out.
        """
        digest = xxhash.xxh3_128()
        held = b""
        with self.path.open("rb", buffering=0) as file:
            for chunk in self._chunks(file):
                digest.update(chunk)
                sha256.update(chunk)
                if held:
                    yield held
                held = chunk
            self._check(file)
        if digest.hexdigest() != fingerprint:
            raise Changed.of(f"{self.path.name} was overwritten in place while it was being sent")
        yield held

    def _chunks(self, file: BinaryIO) -> Iterator[bytes]:
        return iter(lambda: file.read(self.chunk_bytes), b"")

    def _check(self, file: BinaryIO) -> None:
        found = Identity.of(os.fstat(file.fileno()))
        if found != self.identity:
            raise Changed.of(
                f"{self.path.name} changed while it was being read", f"{self.identity} became {found}"
            )


def add_pointers(pinned: Pinned, candidate: Candidate, texts: Mapping[str, bytes]) -> Pinned:
    """Hold pointers beside a checkpoint's data, by copy: a trainer rewrites them for the next checkpoint.

    A kill on the way leaves a note that disagrees with what is held, and so no pin.

    Args:
        pinned: The data.
        candidate: Data and pointers.
        texts: The pointers' contents, by name.

    Raises:
        OSError: There is no room for copies; `pinned` is not to be used any more.
    """
    copies = []
    for name, text in texts.items():
        path = pinned.folder / name
        path.write_bytes(text)
        copies.append((name, Identity.of(path.stat())))
    held = (*pinned.held, *copies)
    pin = Pin(candidate.name, candidate.files, held, pinned.completed_at)
    pinned.note.write_bytes(msgspec.json.encode(pin))
    return replace(pinned, candidate=candidate, held=held)


class Uploader:
    """Makes pinned checkpoints durable, one after the other."""

    def __init__(self, committer: Committer, chunk_bytes: int, attempts: int) -> None:
        self._committer = committer
        self._chunk_bytes = chunk_bytes
        self._attempts = attempts

    async def upload(self, pinned: Pinned) -> Commit:
        """Send and commit.

        Raises:
            Changed: The files changed in place; nothing was committed.
            FerryError: The store's, after the attempts are spent.
        """
        readings = {
            name: Reading(pinned.folder / name, identity, self._chunk_bytes) for name, identity in pinned.held
        }
        prints = {name: await asyncio.to_thread(reading.fingerprint) for name, reading in readings.items()}
        triples = [(name, reading.identity.size, prints[name]) for name, reading in readings.items()]
        folder = checkpoint_folder(pinned.candidate.name, triples)
        earlier = await self._committer.earlier(folder)
        if earlier is not None:
            log.info("already durable", name=earlier.name, sequence=earlier.sequence)
            return earlier
        files = [await self._send(folder, name, reading, prints[name]) for name, reading in readings.items()]
        return await self._committer.commit(pinned.candidate.name, folder, tuple(sorted(files)))

    async def _send(self, folder: str, name: str, reading: Reading, fingerprint: str) -> CommittedFile:
        target = f"{folder}/{name}"
        async for attempt in stamina.retry_context(on=TemporaryError, attempts=self._attempts, timeout=None):
            with attempt:
                sha256 = hashlib.sha256()
                body = reading.body(fingerprint, sha256)
                whole = reading.identity.size <= self._chunk_bytes
                await self._committer.write(target, b"".join(body) if whole else body)
        return CommittedFile(name, target, reading.identity.size, sha256.hexdigest())
