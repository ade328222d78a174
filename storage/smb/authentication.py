"""Proves to a server who logs in, with pyspnego: NTLM with a password, or Kerberos with a ticket.

Its import takes a tenth of a second of a core: it is here, for those who open a connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podferry.storage.smb.nt_status import LoginRefused, TicketRefused
from podferry.storage.smb.options import SmbOptions

if TYPE_CHECKING:
    from spnego import ContextProxy

GUEST = "guest"
"""A user that no server has: it gets the guest's session, if the server has guests."""


class Authentication:
    """The tokens of one login, and the key that comes of it. Each call may take long: Kerberos asks its KDC.

    Raises:
        TicketRefused: There is no valid ticket.
    """

    def __init__(self, options: SmbOptions) -> None:
        import spnego  # noqa: PLC0415 - see above

        self._refused = TicketRefused if options.ticket else LoginRefused
        use = spnego.NegotiateOptions
        credential: spnego.Credential = spnego.Password(options.user or GUEST, options.password)
        protocol, kind = "ntlm", use.use_ntlm
        if options.ticket:
            credential = spnego.KerberosCCache(options.ticket, options.user or None)
            protocol, kind = "negotiate", use.use_negotiate
        try:
            self._context: ContextProxy = spnego.client(
                credential,
                hostname=options.host,
                service="cifs",
                protocol=protocol,
                options=use.session_key | kind,
            )
        except Exception as error:  # of many types, by the Kerberos library that is installed
            raise TicketRefused(_first_line(error)) from error

    def answer(self, token: bytes) -> bytes:
        """The token for the server, after its last one; empty if there is none to send.

        Raises:
            LoginRefused: The server's token cannot be read, or it does not prove who it is.
        """
        if self._context.complete:
            return b""
        try:
            return self._context.step(token or None) or b""
        except Exception as error:  # a malformed token raises what its first wrong byte happens to
            raise self._refused(f"its answer cannot be used: {_first_line(error)}") from error

    @property
    def session_key(self) -> bytes:
        """What the keys of the session are derived from. Raises `LoginRefused` if the login is incomplete."""
        if not self._context.complete:
            raise LoginRefused("the server ends the login before it is complete")
        key: bytes = self._context.session_key
        return key


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]
