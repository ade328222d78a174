"""One session with an FTP server: a control connection, and a passive data connection for each transfer."""

from __future__ import annotations

import ftplib
import socket
import ssl
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Any

from podferry.storage.ftp.last_words import SessionEnded, is_last, received
from podferry.storage.ftp.login import Login, Tls
from podferry.storage.ftp.replies import NoFtp, NoPassiveMode, Replies, TlsRefused
from podferry.storage.timeouts_and_limits import Limits

RECEIVE_BYTES = 1 << 20
"""Of a data connection's buffer: what has been sent behind a range when the transfer is ended is wasted."""
FILE_COMMANDS = ("RETR", "STOR", "APPE")
PIPELINED = 32
"""Commands that wait at the server at a time: some kilobytes, which its socket's buffer holds."""
UNKNOWN_COMMAND = ("500", "501", "502", "504")
"""Replies to a command that the server does not know. Source: RFC 959, 4.2.1."""
ENDED = ("226", "250", "225", "426", "451", "450", "551")
"""Replies to a transfer that the client has ended: complete, aborted, or failed."""


class FtpSession(ftplib.FTP_TLS):
    """A session that has logged in; to be used by one thread at a time.

    Server addresses in replies to PASV are ignored: data comes from the host that was named.

    Attributes:
        directory: The last one that was entered; it was there then.
        features: Commands that the server announces, in capitals.
        replies: To the commands.
        passive_port: Where the server waits for the next data connection, and since when (monotonic seconds);
            None if it was not asked for one.
    """

    def __init__(self, login: Login, context: ssl.SSLContext | None, limits: Limits) -> None:
        """Connect and log in.

        Args:
            login: Where and as whom.
            context: For TLS.
            limits: Its timeouts.

        Raises:
            NoFtp: It is a server of another kind.
            TlsRefused: The server has no TLS.
            ftplib.Error, OSError, EOFError: It does not let this client in.
        """
        self._login, self._limits, self.tls = login, limits, login.tls
        self.replies, self.directory = Replies(), ""
        self.passive_port: tuple[int, float] | None = None
        self._deadline = time.monotonic() + limits.connect_seconds + limits.stall_seconds
        super().__init__(context=context, timeout=limits.connect_seconds, encoding="utf-8")
        try:
            self._greeted(login)
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
        self.timeout = limits.stall_seconds
        self.block()

    def _greeted(self, login: Login) -> None:
        try:
            self.connect(login.host, login.port)
        except ftplib.error_proto as error:
            raise NoFtp(*error.args) from error

    def block(self) -> None:
        """Have calls wait for the server, as long as a request may take without a byte."""
        assert self.sock is not None  # noqa: S101 - it has logged in
        self.sock.settimeout(self._limits.stall_seconds)

    def renew(self) -> None:
        """Give what follows the time of one request: a server that sends drop by drop never stalls."""
        self._deadline = time.monotonic() + self._limits.request_seconds

    def check_time(self) -> None:
        """Raise `TimeoutError` if the time of the request is over."""
        if time.monotonic() > self._deadline:
            raise TimeoutError(f"no end within {self._limits.request_seconds:.0f} s")

    def getmultiline(self) -> str:
        """See `ftplib.FTP.getmultiline`.

        Raises:
            Endless: It is longer than a reply can be.
            EOFError, OSError: The connection ends, or the time of the request.
        """
        assert self.sock is not None  # noqa: S101 - it is connected
        while (reply := self.replies.take()) is None:
            self.check_time()
            data = received(self.sock)
            if not data:
                raise EOFError
            self.replies.feed(data)
        return reply

    def getresp(self) -> str:
        """See `ftplib.FTP.getresp`; raises `SessionEnded` if the server ends the session."""
        try:
            return super().getresp()
        except ftplib.error_perm as error:
            if is_last(error):
                raise SessionEnded(*error.args) from error
            raise

    def connect(self, *args: Any, **kwargs: Any) -> str:
        """See `ftplib.FTP.connect`; with TLS from the first byte if that was chosen."""
        if self.tls is not Tls.IMPLICIT:
            return super().connect(*args, **kwargs)
        self.host, self.port = self._login.host, self._login.port
        plain = socket.create_connection((self.host, self.port), self.timeout)
        self.af = plain.family
        self.sock = self._private(plain)
        self.welcome = self.getresp()
        return self.welcome

    def auth(self) -> str:
        """See `ftplib.FTP_TLS.auth`; the protocol's name is that of RFC 4217."""
        try:
            reply = self.voidcmd("AUTH TLS")
        except ftplib.error_perm as error:
            raise TlsRefused(*error.args) from error
        assert self.sock is not None  # noqa: S101 - it is connected
        self.replies.clear()  # what has come in the clear is no reply to what is said in private
        self.sock = self._private(self.sock)
        return reply

    def _private(
        self, plain: socket.socket, session: ssl.SSLSession | None = None, *, ends_anyhow: bool = True
    ) -> ssl.SSLSocket:
        return self.context.wrap_socket(
            plain, server_hostname=self.host, session=session, suppress_ragged_eofs=ends_anyhow
        )

    def cwd(self, dirname: str) -> str:
        """See `ftplib.FTP.cwd`."""
        self.directory, reply = dirname, super().cwd(dirname)
        return reply

    def makepasv(self) -> tuple[str, int]:
        """See `ftplib.FTP.makepasv`. The server no longer waits at the last port.

        Raises:
            NoPassiveMode: The server refuses to wait at any.
        """
        self.passive_port = None
        try:
            return super().makepasv()
        except ftplib.error_perm as error:
            raise NoPassiveMode(*error.args) from error

    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[socket.socket, int | None]:
        """See `ftplib.FTP.ntransfercmd`. TLS continues the session of the control connection.

        Servers demand that (vsftpd: `require_ssl_reuse`): it proves that both come from the same client.
        """
        data, size = ftplib.FTP.ntransfercmd(self, cmd, rest)
        data.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        if self.tls is Tls.NONE:
            return data, size
        assert isinstance(self.sock, ssl.SSLSocket)  # noqa: S101 - it has logged in with TLS
        try:
            # The end of a file, its size shows; that of a listing, only TLS.
            is_file = cmd.startswith(FILE_COMMANDS)
            return self._private(data, self.sock.session, ends_anyhow=is_file), size
        except BaseException:
            data.close()
            raise

    def putline(self, line: str) -> None:
        """See `ftplib.FTP.putline`; a name may have bytes that are not UTF-8."""
        self.putlines([line])

    def putlines(self, lines: Iterable[str]) -> None:
        """Send some commands at once."""
        assert self.sock is not None  # noqa: S101 - it is connected
        self.sock.sendall(b"".join(map(command_line, lines)))

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

    def times(self, paths: Iterable[str]) -> list[str]:
        """When files were modified, `YYYYMMDDHHMMSS`; empty where the server does not say.

        Many commands are sent before the first reply is read: a directory takes no round trip for each file.
        """
        found: list[str] = []
        remaining = iter(paths)
        while batch := list(islice(remaining, PIPELINED)):
            self.renew()
            self.putlines(f"MDTM {path}" for path in batch)
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
        end_privacy(data)
        data.close()
        self.voidresp()


def command_line(line: str) -> bytes:
    """A command as it is sent; raises `ValueError` for one that would be two."""
    if "\r" in line or "\n" in line:
        raise ValueError("an illegal newline character should not be contained")
    return line.encode("utf-8", "surrogateescape") + b"\r\n"


def end_privacy(data: socket.socket) -> None:
    """Say that no more comes; whether the server says so too, its reply shows."""
    if isinstance(data, ssl.SSLSocket):
        with suppress(OSError, ValueError):
            data.unwrap()
