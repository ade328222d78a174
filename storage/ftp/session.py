"""One session with an FTP server: a control connection, and a passive data connection for each transfer."""

from __future__ import annotations

import ftplib
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from podferry.storage.ftp.login import Login, Tls

RECEIVE_BYTES = 1 << 20
"""Of a data connection's buffer: what has been sent behind a range when the transfer is ended is wasted."""
PIPELINED = 32
"""Commands that wait at the server at a time: some kilobytes, which its socket's buffer holds."""
UNKNOWN_COMMAND = ("500", "501", "502", "504")
"""Replies to a command that the server does not know. Source: RFC 959, 4.2.1."""
ENDED = ("226", "250", "225", "426", "451", "450", "551")
"""Replies to a transfer that the client has ended: complete, aborted, or failed."""


class FtpSession(ftplib.FTP_TLS):
    """A session that has logged in; to be used by one thread at a time.

    Server addresses in replies to PASV are ignored: data comes from the host that was named.
    """

    def __init__(self, login: Login, context: ssl.SSLContext | None, seconds: tuple[float, float]) -> None:
        """Connect and log in.

        Args:
            login: Where and as whom.
            context: For TLS.
            seconds: To connect, and to wait for a byte later.

        Raises:
            ftplib.Error, OSError, EOFError: The server does not let this client in.
        """
        self._login = login
        super().__init__(context=context, timeout=seconds[0], encoding="utf-8")
        try:
            self.connect(login.host, login.port)
            if login.tls is Tls.EXPLICIT:
                self.auth()
            self.login(login.user, login.password, secure=False)
            if login.tls is not Tls.NONE:
                self.prot_p()
            self.features = self._features()
            self.voidcmd("TYPE I")  # sizes in ASCII mode are refused by some servers, and wrong by others
        except BaseException:
            self.close()
            raise
        self.timeout = seconds[1]
        assert self.sock is not None  # noqa: S101 - it has logged in
        self.sock.settimeout(seconds[1])

    def connect(self, *args: Any, **kwargs: Any) -> str:
        """See `ftplib.FTP.connect`; with TLS from the first byte if that was chosen."""
        if self._login.tls is not Tls.IMPLICIT:
            return super().connect(*args, **kwargs)
        self.host, self.port = self._login.host, self._login.port
        plain = socket.create_connection((self.host, self.port), self.timeout)
        self.af = plain.family
        self.sock = self._private(plain)
        self.file = self.sock.makefile("r", encoding=self.encoding, errors="surrogateescape")
        self.welcome = self.getresp()
        return self.welcome

    def auth(self) -> str:
        """See `ftplib.FTP_TLS.auth`; the protocol's name is that of RFC 4217."""
        reply = self.voidcmd("AUTH TLS")
        assert self.sock is not None  # noqa: S101 - it is connected
        self.sock = self._private(self.sock)
        self.file = self.sock.makefile("r", encoding=self.encoding, errors="surrogateescape")
        return reply

    def _private(self, plain: socket.socket, session: ssl.SSLSession | None = None) -> ssl.SSLSocket:
        return self.context.wrap_socket(plain, server_hostname=self.host, session=session)

    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[socket.socket, int | None]:
        """See `ftplib.FTP.ntransfercmd`. TLS continues the session of the control connection.

        Servers demand that (vsftpd: `require_ssl_reuse`): it proves that both come from the same client.
        """
        data, size = ftplib.FTP.ntransfercmd(self, cmd, rest)
        data.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        if self._login.tls is Tls.NONE:
            return data, size
        assert isinstance(self.sock, ssl.SSLSocket)  # noqa: S101 - it has logged in with TLS
        try:
            return self._private(data, self.sock.session), size
        except BaseException:
            data.close()
            raise

    def putline(self, line: str) -> None:
        """See `ftplib.FTP.putline`; a name may have bytes that are not UTF-8."""
        if "\r" in line or "\n" in line:
            raise ValueError("an illegal newline character should not be contained")
        assert self.sock is not None  # noqa: S101 - it is connected
        self.sock.sendall(line.encode(self.encoding, "surrogateescape") + b"\r\n")

    def _features(self) -> frozenset[str]:
        """The commands and options that the server announces (FEAT, RFC 2389), in capitals."""
        try:
            lines = self.sendcmd("FEAT").splitlines()[1:-1]
        except ftplib.error_perm:
            return frozenset()
        found = frozenset(line.strip().upper().partition(" ")[0] for line in lines if line.strip())
        if "UTF8" in found:
            with suppress(ftplib.error_perm):
                self.sendcmd("OPTS UTF8 ON")
        return found

    def lines(self, command: str) -> Iterator[str]:
        """The lines of a listing; names may have bytes that are not UTF-8.

        Raises:
            ftplib.Error: Also if the server says at the end that it failed, as vsftpd does with a 226.
        """
        data = self.transfercmd(command)
        with data, data.makefile("rb") as file:
            for line in file:
                yield line.decode("utf-8", "surrogateescape").rstrip("\r\n")
            _end_privacy(data)
        reply = self.voidresp()
        if "failed" in reply.lower():
            raise ftplib.error_perm(f"550 {reply}")

    def times(self, paths: Iterable[str]) -> list[str]:
        """When files were modified, `YYYYMMDDHHMMSS`; empty where the server does not say.

        Many commands are sent before the first reply is read: a directory takes no round trip for each file.
        """
        found: list[str] = []
        remaining = iter(paths)
        while batch := list(islice(remaining, PIPELINED)):
            for path in batch:
                self.putline(f"MDTM {path}")
            for reply in [self.getmultiline() for _ in batch]:
                if reply[:1] == "4":
                    raise ftplib.error_temp(reply)
                found.append(reply[4:].strip() if reply[:3] == "213" else "")
        return found

    def end_early(self, data: socket.socket) -> None:
        """End a transfer of which no more is needed.

        Raises:
            ftplib.Error, OSError, EOFError: The session is of no use any more.
        """
        data.close()
        reply = self.getmultiline()
        if reply[:3] not in ENDED:
            raise ftplib.error_proto(reply)

    def end(self, data: socket.socket) -> None:
        """End a transfer that is complete; raises what the server says if it is not."""
        _end_privacy(data)
        data.close()
        self.voidresp()


def _end_privacy(data: socket.socket) -> None:
    """Say that no more comes; whether the server says so too, its reply shows."""
    if isinstance(data, ssl.SSLSocket):
        with suppress(OSError, ValueError):
            data.unwrap()
