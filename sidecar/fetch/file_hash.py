"""The hash of a file that grows: computed as far as its bytes have arrived, while the rest is fetched."""

from __future__ import annotations

import threading
from pathlib import Path

from podferry.sidecar.runtime.file_digest import CHUNK_BYTES
from podferry.storage.checksum.checksums import ChecksumKind, running_checksum


class FileHash:
    """A hash of the first `position` bytes of a file. Calls block, and are thread-safe.

    Args:
        kind: Of the hash.
        path: The file.
    """

    def __init__(self, kind: ChecksumKind, path: Path) -> None:
        self._kind, self._path = kind, path
        self._lock = threading.Lock()
        self.restart()

    def restart(self) -> None:
        """Start again from the first byte: some have changed."""
        with self._lock:
            self._digest = running_checksum(self._kind)
            self.position = 0

    def read_to(self, end: int) -> bool:
        """Hash the bytes up to `end`; whether there were any. Raises `OSError` if they cannot be read."""
        with self._lock:
            first = self.position
            if first < end:
                self._read(end)
            return self.position > first

    def digest(self, size: int) -> bytes:
        """The hash of the complete file of this size. Raises `OSError` if it cannot be read."""
        self.read_to(size)
        return self._digest.digest()

    def _read(self, end: int) -> None:
        buffer = memoryview(bytearray(min(CHUNK_BYTES, end - self.position)))
        with self._path.open("rb", buffering=0) as file:
            file.seek(self.position)
            while count := file.readinto(buffer[: end - self.position]):
                self._digest.update(buffer[:count])
                self.position += count
