"""What vsftpd says when it ends a session that it cannot continue, as without a free port for a transfer.

It says nothing about a path: another session may succeed. With TLS it is said in the clear.
"""

from __future__ import annotations

import errno
import ftplib
import socket
import ssl

from podferry.storage.errors.connection_failure import NOT_TLS
from podferry.storage.ftp.replies import MAX_LINE_BYTES

LAST_WORDS = "500 OOPS"
"""Source: vsftpd, `utility.c`, `die`."""


class SessionEnded(ftplib.error_temp):
    """The server has ended the session."""


def received(control: socket.socket) -> bytes:
    """What comes over a control connection; raises `ConnectionAbortedError` for what is not in its TLS."""
    try:
        return control.recv(MAX_LINE_BYTES)
    except ssl.SSLError as error:
        if error.reason not in NOT_TLS:
            raise
        reason = "the server ends the session outside of TLS"
        # Without its cause, by which messages would deny that there was TLS.
        raise ConnectionAbortedError(errno.ECONNABORTED, reason) from None


def is_last(refusal: ftplib.error_perm) -> bool:
    """Whether these are last words."""
    return str(refusal).startswith(LAST_WORDS)
