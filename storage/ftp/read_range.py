"""Reads a file, or a range of it, in one FTP session. Calls block."""

from __future__ import annotations

import ftplib
import socket

from podferry.contract.errors import Corrupt
from podferry.contract.manifest import Entry
from podferry.storage.errors.translate import StoreLocation, check_listed, store_error, too_long, too_short
from podferry.storage.ftp.directories import explained, file_entry, path_of
from podferry.storage.ftp.session import FtpSession
from podferry.storage.store import Receive

CHUNK_BYTES = 512 * 1024
"""Received before they are passed on: they stay in the processor's cache until they are in the file."""
TIMED_BYTES = 8 << 20
"""Of a long transfer, within the time of one request: of a slow server, all of it may take longer."""


class ReadRange:
    """A range of a file that is being read; after a lost connection, `run` continues where it was.

    Args:
        location: Of the store, for messages.
        name: Of the file.
        wanted: Start, length, tag and size: see `Store.read`.
        receive: What takes the bytes as they arrive; None to collect them.
    """

    def __init__(
        self,
        location: StoreLocation,
        name: str,
        wanted: tuple[int, int | None, str, int | None],
        receive: Receive | None = None,
    ) -> None:
        self._location, self._name, self._path = location, name, path_of(location.uri, name)
        self._start, self._length, self._tag, self._size = wanted
        self._receive, self._data = receive, memoryview(b"")
        self._total: int | None = None
        self._arrived = 0
        self._seen: Entry | None = None
        self._found: int | None = None
        self._ended_at = -1
        self._is_longer = False

    def run(self, session: FtpSession) -> memoryview:
        """Read what has not arrived; the bytes, unless `receive` took them.

        Raises:
            Changed: It is not what was listed.
            Corrupt: It ends before its size, or continues behind it.
            EOFError: The transfer has ended before the file: cut, while the server believes it complete.
            ftplib.Error, OSError: The server's error, or that of the connection.
        """
        if self._total is None:
            self._total = self._length_to_read(session)
            self._data = memoryview(bytearray(self._total if self._receive is None else 0))
        try:
            if self._total:
                self._transfer(session, self._total)
        except ftplib.error_perm as error:
            raise explained(session, self._path, error) from error
        # After the bytes: a file that changed meanwhile shows it.
        entry = file_entry(session, self._path, self._name, self._found)
        check_listed(self._location, entry, self._tag, self._size)
        if self._seen is not None and self._seen != entry:
            raise store_error("changed", self._location, self._name, f"tag {entry.tag}, was {self._seen.tag}")
        if self._start + self._total > entry.size:
            raise self._short(entry.size)
        self._check_arrived(self._total, entry.size)
        return self._data

    def _check_arrived(self, total: int, size: int) -> None:
        if self._is_longer:
            raise too_long(self._location, self._name, size)
        if self._arrived == total:
            return
        if self._ended_at == self._arrived:  # twice: the file, not the connection
            raise self._short(self._start + self._arrived)
        self._ended_at = self._arrived
        raise EOFError(f"{self._start + self._arrived} of {size} bytes")

    def _length_to_read(self, session: FtpSession) -> int:
        if self._length is not None and self._size is not None and self._tag:
            return self._length  # all that could have changed is checked afterwards
        self._seen = file_entry(session, self._path, self._name)
        check_listed(self._location, self._seen, self._tag, self._size)
        length = max(0, self._seen.size - self._start) if self._length is None else self._length
        if self._start + length > self._seen.size:
            raise self._short(self._seen.size)
        return length

    def _transfer(self, session: FtpSession, total: int) -> None:
        """Read the rest. The transfer is ended early if the file goes further."""
        start = self._start + self._arrived
        data = session.transfercmd(f"RETR {self._path}", start or None)
        with data:
            if self._receive is None:
                self._collect(session, data, total)
            else:
                self._pass_on(session, data, total, self._receive)
            whole = self._size is not None and self._start + total == self._size
            self._is_longer = self._arrived == total and whole and bool(data.recv(1))
            if self._arrived < total:
                session.end(data)
            elif whole and not self._is_longer:
                session.end(data)
                self._found = self._size
            else:
                session.end_early(data)

    def _collect(self, session: FtpSession, data: socket.socket, total: int) -> None:
        while self._arrived < total and (count := data.recv_into(self._data[self._arrived :])):
            self._arrived += count
            session.check_time()

    def _pass_on(self, session: FtpSession, data: socket.socket, total: int, receive: Receive) -> None:
        buffer = memoryview(bytearray(min(CHUNK_BYTES, total - self._arrived)))
        renewed = self._arrived
        while count := _fill(buffer[: total - self._arrived], session, data):
            receive(buffer[:count], self._arrived)
            self._arrived += count
            if self._arrived - renewed >= TIMED_BYTES:
                session.renew()
                renewed = self._arrived

    def _short(self, size: int) -> Corrupt:
        found = too_short(self._location, self._name, self._start, self._length, f"{size} bytes")
        assert isinstance(found, Corrupt)  # noqa: S101 - the rule says so
        return found


def _fill(view: memoryview, session: FtpSession, data: socket.socket) -> int:
    """Receive until a buffer is full, or the sender has ended: how many bytes."""
    filled = 0
    while filled < len(view) and (count := data.recv_into(view[filled:])):
        filled += count
        session.check_time()
    return filled
