"""Reads a held file for sending: its fingerprints first, then each part again, compared before it is sent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import msgspec
import xxhash

from podferry.contract.errors import Changed, Refused
from podferry.sidecar.runtime.file_identity import FileIdentity

READ_BYTES = 256 * 1024
"""Bytes that are digested at once: still in the core's own cache when the second digest reads them."""


class Fingerprint(msgspec.Struct, frozen=True):
    """What a file held when it was read for the first time.

    Attributes:
        xxh128: XXH3-128 of all of it, 32 hexadecimal digits.
        parts: The same of each part, in order; an empty file has one part.
    """

    xxh128: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerifiedReader:
    """A held file.

    Attributes:
        path: Where it is held.
        identity: What it must keep.
        part_bytes: Size of each part but the last.
    """

    path: Path
    identity: FileIdentity
    part_bytes: int

    @property
    def count(self) -> int:
        """How many parts there are; an empty file has one."""
        return max(1, -(-self.identity.size // self.part_bytes))

    def span(self, number: int) -> tuple[int, int]:
        """Where part `number`, from 1, begins, and its length."""
        start = (number - 1) * self.part_bytes
        return start, min(self.part_bytes, self.identity.size - start)

    def fingerprint(self) -> Fingerprint:
        """The first pass.

        Raises:
            Changed: The file is no longer what was held.
            Refused: It cannot be read.
        """
        whole, parts = xxhash.xxh3_128(), []
        with self._opened() as file:
            for number in range(1, self.count + 1):
                part = xxhash.xxh3_128()
                for chunk in self._chunks(file, self.span(number)[1]):
                    part.update(chunk)
                    if self.count > 1:
                        whole.update(chunk)
                parts.append(part.hexdigest())
        return Fingerprint(whole.hexdigest() if self.count > 1 else parts[0], tuple(parts))

    def part(self, number: int, expected: str) -> bytes:
        """One part, from 1, as the first pass read it.

        Raises:
            Changed: It is not what the first pass read, by its XXH3-128 `expected`, or the file is no longer
                what was held.
            Refused: It cannot be read.
        """
        start, length = self.span(number)
        with self._opened() as file:
            file.seek(start)
            data = file.read(length)
            if len(data) < length:  # some file systems give less than was asked for at once
                data += b"".join(map(bytes, self._chunks(file, length - len(data))))
        if xxhash.xxh3_128_hexdigest(data) != expected:
            raise Changed.of(f"{self.path.name} was overwritten in place while it was being sent")
        return data

    def body(self, fingerprint: Fingerprint) -> Iterator[bytes]:
        """All parts in order. The last is given out only when all before it were what the first pass read.

        Raises:
            Changed, Refused: See `part`.
        """
        for number, expected in enumerate(fingerprint.parts, start=1):
            yield self.part(number, expected)

    def _chunks(self, file: FileIO, left: int) -> Iterator[memoryview]:
        """The next `left` bytes, in one buffer that is filled again and again."""
        buffer = memoryview(bytearray(min(READ_BYTES, left)))
        while left:
            count = file.readinto(buffer[:left])
            if not count:
                measured = f"{file.tell()} bytes, {self.identity.size} were held"
                raise Changed.of(f"{self.path.name} became shorter while it was being read", measured)
            yield buffer[:count]
            left -= count

    @contextmanager
    def _opened(self) -> Iterator[FileIO]:
        """The file; what was read counts only if it is still what was held."""
        try:
            with self.path.open("rb", buffering=0) as file:
                yield file
                found = FileIdentity.of(os.fstat(file.fileno()))
        except FileNotFoundError:
            raise Changed.of(f"{self.path.name} went while it was being uploaded") from None
        except OSError as error:
            what = f"{self.path.name} cannot be read for uploading"
            raise Refused.of(what, str(error), "Make it readable for the agent") from error
        if found != self.identity:
            what = f"{self.path.name} changed while it was being read"
            raise Changed.of(what, f"{self.identity} became {found}")
