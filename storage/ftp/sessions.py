"""Sessions with one FTP server: opened when needed, each used by one thread at a time, replaced when lost."""

from __future__ import annotations

import ftplib
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from podferry.contract.errors import AccessDenied
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation, credentials_read, store_error
from podferry.storage.ftp.login import Login, Tls, login_for
from podferry.storage.ftp.refused_writes import NameRefused
from podferry.storage.ftp.replies import NoFtp, TlsRefused
from podferry.storage.ftp.session import FtpSession
from podferry.storage.network.tls import tls_context
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits

MAX_SESSIONS = 8
"""Of a store: what Pure-FTPd admits from one address by default; others admit more."""
CLOSED = "the store is closed"
SOUND = (ftplib.error_perm, PermissionError, FileNotFoundError, NameRefused)
"""Errors that are a complete reply, or follow one: the session is in order."""
REFUSED_LOGINS = ("530", "331", "332", "430", "532")
"""Replies of a server that does not know the user, or the password. Source: RFC 959, section 4.2."""


class Sessions:
    """The sessions of one store, for threads.

    Attributes:
        answered: Whether the server has let this client in before.
    """

    def __init__(self, uri: Uri, config: StoreConfig, location: StoreLocation, limits: Limits) -> None:
        self._uri, self._config, self._location = uri, config, location
        self._limits = limits
        self._changed = threading.Condition()
        self._idle: list[FtpSession] = []
        self._used: set[FtpSession] = set()
        self._opening = 0
        self._limit = MAX_SESSIONS
        self._closed = False
        self._context: ssl.SSLContext | None = None
        self.answered = False

    @contextmanager
    def session(self) -> Iterator[FtpSession]:
        """A session for one operation; after an error that may leave it in disorder, it is closed.

        Raises:
            FerryError: The server does not let this client in.
            ftplib.Error, OSError, EOFError: There is no session.
        """
        session = self._taken()
        session.renew()
        session.block()
        try:
            yield session
        except BaseException as error:
            self.give_back(session, sound=isinstance(error, SOUND))
            raise
        self.give_back(session, sound=True)

    def idle(self) -> FtpSession | None:
        """A session that is open and not in use, which must be given back; None if there is none."""
        with self._changed:
            session = self._idle.pop() if self._idle and not self._closed else None
            if session is not None:
                self._used.add(session)
            return session

    def open_one(self) -> None:
        """Have one more idle session: a new one, or if there are enough, the first that is given back.

        Raises:
            As `session`.
        """
        self.give_back(self._taken(), sound=True)

    def close(self) -> None:
        """Close all sessions, also those in use: what waits for them fails."""
        with self._changed:
            self._closed = True
            found = [*self._idle, *self._used]
            self._idle.clear()
            self._changed.notify_all()
        for session in found:
            _shut(session)

    def _taken(self) -> FtpSession:
        with self._changed:
            while True:
                if self._closed:
                    raise ConnectionAbortedError(CLOSED)
                if self._idle:
                    session = self._idle.pop()
                    self._used.add(session)
                    return session
                if len(self._used) + self._opening < self._limit:
                    self._opening += 1
                    break
                self._changed.wait()
        return self._opened()

    def _opened(self) -> FtpSession:
        session = None
        try:
            session = self._connect()
        except (ftplib.Error, OSError, EOFError):
            with self._changed:
                held = len(self._used) + len(self._idle)
                if not held or self._closed:
                    raise
                # The server admits no more: those that there are must do.
                self._limit = held
        finally:
            with self._changed:
                self._opening -= 1
                if session is not None:
                    self._used.add(session)
                self._changed.notify_all()
        self.answered = True
        return session if session is not None else self._taken()

    def give_back(self, session: FtpSession, *, sound: bool) -> None:
        """End the use of a session; one that is not in order is closed."""
        with self._changed:
            self._used.discard(session)
            if sound and not self._closed:
                self._idle.append(session)
            else:
                _shut(session)
            self._changed.notify()

    def _connect(self) -> FtpSession:
        variables = self._variables()
        login = login_for(self._uri, variables)
        if login.tls is not Tls.NONE and self._context is None:
            self._context = tls_context(self._config.network.ca.pem)
        try:
            return FtpSession(login, self._context, self._limits)
        except NoFtp as error:
            if self.answered:
                raise
            raise store_error("not ftp", self._location, "", f"{str(error)[:100]!a}") from error
        except TlsRefused as error:
            if self.answered:
                raise
            raise store_error("no tls", self._location, "", f"AUTH TLS: {str(error)[:100]!a}") from error
        except ftplib.error_perm as error:
            if self.answered or str(error)[:3] not in REFUSED_LOGINS:
                raise
            raise _refused(login, self._location, error) from error

    def _variables(self) -> Mapping[str, str]:
        read: Callable[[], Mapping[str, str]] | None = self._config.reload_credentials
        return read() if read is not None else self._config.credentials


def _refused(login: Login, location: StoreLocation, error: Exception) -> AccessDenied:
    read = credentials_read(location.credentials, () if location.credentials else location.unused)
    measured = f"{str(error)[:100]!a}; user {login.user}; {location.address}; {read}"
    remedy = "Set FTP_USERNAME and FTP_PASSWORD in the environment or in the Secret, or correct them"
    remedy += "" if login.tls is not Tls.NONE else "; if the server requires TLS, write ftps://"
    return AccessDenied.of(f"the server rejects the login for {location.uri}", measured, remedy)


def _shut(session: FtpSession) -> None:
    """Close the connection at once, so that a thread that waits for it does not."""
    with suppress(Exception):  # nothing is left that could be lost
        if session.sock is not None:
            session.sock.close()
        session.close()
