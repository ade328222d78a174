"""Reads a held file twice: for its fingerprints, then part by part, each compared before it is sent."""

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
"""Bytes per read: still in the core's own cache when the second digest reads them."""


class Fingerprint(msgspec.Struct, frozen=True):
    """XXH3-128, 32 hexadecimal digits, of a file at the first pass and of each of its parts, in order."""

    xxh128: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerifiedReader:
    """A held file, which must keep `identity`; each part but the last has `part_bytes`."""

    path: Path
    identity: FileIdentity
    part_bytes: int

    @property
    def count(self) -> int:
        """Number of parts; an empty file has one."""
        return max(1, -(-self.identity.size // self.part_bytes))

    def span(self, number: int) -> tuple[int, int]:
        """Start and length of part `number`, from 1."""
        start = (number - 1) * self.part_bytes
        return start, min(self.part_bytes, self.identity.size - start)

    def fingerprint(self) -> Fingerprint:
        """Read the file for the first time.

        Raises:
            Changed: The file is no longer what was held.
            Refused: It is not readable.
        """
        entire, parts = xxhash.xxh3_128(), []
        with self._opened() as file:
            for number in range(1, self.count + 1):
                part = xxhash.xxh3_128()
                for chunk in self._chunks(file, self.span(number)[1]):
                    part.update(chunk)
                    if self.count > 1:
                        entire.update(chunk)
                parts.append(part.hexdigest())
        return Fingerprint(entire.hexdigest() if self.count > 1 else parts[0], tuple(parts))

    def part(self, number: int, expected: str) -> bytes:
        """Part `number`, from 1, as the first pass read it.

        Raises:
            Changed: Its XXH3-128 is not `expected`, or the file is no longer what was held.
            Refused: It is not readable.
        """
        start, length = self.span(number)
        with self._opened() as file:
            file.seek(start)
            data = file.read(length)
            if len(data) < length:  # some file systems return fewer bytes than requested
                data += b"".join(map(bytes, self._chunks(file, length - len(data))))
        if xxhash.xxh3_128_hexdigest(data) != expected:
            raise Changed.of(f"{self.path.name} was overwritten in place while it was being sent")
        return data

    def body(self, fingerprint: Fingerprint) -> Iterator[bytes]:
        """All parts in order. The last is returned only if all before it were what the first pass read.

        Raises:
            Changed, Refused: See `part`.
        """
        for number, expected in enumerate(fingerprint.parts, start=1):
            yield self.part(number, expected)

    def _chunks(self, file: FileIO, left: int) -> Iterator[memoryview]:
        """The next `left` bytes, in one reused buffer."""
        buffer = memoryview(bytearray(min(READ_BYTES, left)))
        while left:
            count = file.readinto(buffer[:left])
            if not count:
                measured = f"{os.fstat(file.fileno()).st_size} bytes, {self.identity.size} were held"
                raise Changed.of(f"{self.path.name} became shorter while it was being read", measured)
            yield buffer[:count]
            left -= count

    @contextmanager
    def _opened(self) -> Iterator[FileIO]:
        """The file; on exit, checks that it is still what was held."""
        try:
            with self.path.open("rb", buffering=0) as file:
                yield file
                found = FileIdentity.of(os.fstat(file.fileno()))
        except FileNotFoundError:
            raise Changed.of(f"{self.path.name} was removed while it was being uploaded") from None
        except OSError as error:
            what = f"{self.path.name} cannot be read for uploading"
            raise Refused.of(what, str(error), "Make it readable for the agent") from error
        if found != self.identity:
            what = f"{self.path.name} changed while it was being read"
            raise Changed.of(what, f"{self.identity} became {found}")
