"""Puts the messages of SFTP together from the pieces in which they arrive. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from podferry.storage.sftp.messages import ProtocolError

MAX_MESSAGE_BYTES = 1 << 20
"""A longer response is no SFTP: such as the text that a login script prints."""


class MessageBuffer:
    """Puts messages together from the pieces in which they arrive."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held = 0
        self._needed = 4

    def feed(self, piece: bytes) -> Iterator[tuple[int, memoryview]]:
        """The messages that are now complete: their types, and what follows.

        Raises:
            ProtocolError: A length is none of SFTP.
        """
        self._pieces.append(piece)
        self._held += len(piece)
        if self._held < self._needed:
            return
        data = memoryview(b"".join(self._pieces) if len(self._pieces) > 1 else piece)
        start = 0
        while (end := start + self._length_at(data, start)) <= len(data):
            yield data[start + 4], data[start + 5 : end]
            start = end
        self._needed = end - start
        self._pieces = [bytes(data[start:])]
        self._held = len(data) - start

    @staticmethod
    def _length_at(data: memoryview, start: int) -> int:
        """Length of the message at a position, with its own four bytes; too much if unknown."""
        if len(data) - start < 4:
            return len(data) - start + 1
        length = int.from_bytes(data[start : start + 4], "big")
        if not 5 <= length <= MAX_MESSAGE_BYTES:
            text = ascii(bytes(data[start : start + 40]))[2:-1]
            raise ProtocolError(f"the server does not send SFTP messages but {text}")
        return length + 4
