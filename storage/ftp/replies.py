"""The replies on a control connection, from bytes as they arrive. Pure. Source: RFC 959, section 4.2."""

from __future__ import annotations

import ftplib

MAX_LINE_BYTES = 8192
"""Of a reply or a listing. A name has 255 bytes, and a path 4,096."""
MAX_REPLY_LINES = 1000
"""Of one reply. Banners have tens of lines."""


class Endless(ftplib.Error):
    """The server sends more than a reply or a line can have."""


class TlsRefused(ftplib.error_perm):
    """The reply to AUTH TLS of a server that has no TLS: 530 from vsftpd, 500 to 534 from others."""


class NoPassiveMode(ftplib.Error):
    """The reply to PASV or EPSV of a server that has them disabled; no path is denied."""


class NoFtp(ftplib.error_proto):
    """What a server of another kind greets with."""


class Replies:
    """Takes bytes, and returns complete replies."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._lines: list[str] = []

    def feed(self, data: bytes | memoryview) -> None:
        """Take what has arrived."""
        self._received += data

    def clear(self) -> None:
        """Forget what has arrived and was not taken."""
        self._received.clear()
        self._lines.clear()

    def take(self) -> str | None:
        """The next reply, its lines joined by line feeds; None if it is not complete.

        Raises:
            Endless: It has too many lines, or one that is too long.
        """
        while (end := self._received.find(b"\n")) >= 0:
            line = self._received[:end].decode("utf-8", "surrogateescape").rstrip("\r")
            del self._received[: end + 1]
            self._lines.append(line)
            if self._is_complete(line):
                reply = "\n".join(self._lines)
                self._lines.clear()
                return reply
            if len(self._lines) > MAX_REPLY_LINES:
                raise Endless(f"a reply has over {MAX_REPLY_LINES:,} lines: {self._lines[0][:40]!a}")
        if len(self._received) > MAX_LINE_BYTES:
            raise Endless(f"a line of a reply has over {MAX_LINE_BYTES:,} bytes")
        return None

    def _is_complete(self, line: str) -> bool:
        """Whether a line is the only one of a reply, or the last: its code is repeated, without a hyphen.

        A line without a code is no reply, and nothing follows: `SSH-2.0-…` is the greeting of another server.
        """
        code = self._lines[0][:3]
        return not code.isdigit() or (line[3:4] != "-" and (len(self._lines) == 1 or line[:3] == code))
