"""The lines of a listing, complete or an error."""

from __future__ import annotations

import ftplib
import socket
import ssl
from collections.abc import Iterator

from podferry.storage.ftp.replies import MAX_LINE_BYTES, Endless
from podferry.storage.ftp.session import FtpSession, end_privacy

LISTING_BYTES = 1 << 16
"""Taken at a time."""
RENEWED_LINES = 1000
"""For which the time of a request is enough."""


def listed_lines(session: FtpSession, command: str) -> Iterator[str]:
    """The lines of a listing; names may have bytes that are not UTF-8.

    Raises:
        Endless: A line is longer than one can be.
        EOFError: It ends within a line, or in TLS as a connection does that is cut.
        ftplib.Error: Also if the server says at the end that it failed, as vsftpd does with a 226.
    """
    data = session.transfercmd(command)
    with data:
        try:
            for number, line in enumerate(_lines(session, data), 1):
                if number % RENEWED_LINES == 0:
                    session.renew()
                yield line.decode("utf-8", "surrogateescape").removesuffix("\r")
        except ssl.SSLEOFError as error:
            # Some servers never say that TLS ends: what they list looks like what was cut.
            raise EOFError(
                "a listing ends as a connection does that is cut: without TLS's own end"
            ) from error
        end_privacy(data)
    reply = session.voidresp()
    if "failed" in reply.lower():
        raise ftplib.error_perm(f"550 {reply}")


def _lines(session: FtpSession, data: socket.socket) -> Iterator[bytes]:
    rest = b""
    while received := data.recv(LISTING_BYTES):
        *lines, rest = (rest + received).split(b"\n")
        yield from lines
        if len(rest) > MAX_LINE_BYTES:
            raise Endless(f"a line of a listing has over {MAX_LINE_BYTES:,} bytes")
        session.check_time()
    if rest:  # a listing ends with the end of a line
        raise EOFError(f"a listing ends within a line: {rest[:40]!a}")
