"""Which server an `ftp://` or `ftps://` URI names, who logs in there, and whether with TLS."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.credentials.login import authority_of, login_names, login_values, server_address

PORT, IMPLICIT_PORT = 21, 990
"""Source: the service names of IANA, `ftp` and `ftps`."""
ANONYMOUS = "anonymous"
ALIASES = {"FTP_USERNAME": "username", "FTP_PASSWORD": "password"}
"""Keys of Secrets of the type kubernetes.io/basic-auth."""


class Tls(enum.Enum):
    """How a session becomes private: not, from its first byte (RFC 4217's predecessor), or by AUTH TLS."""

    NONE = ""
    IMPLICIT = "implicit"
    EXPLICIT = "explicit"


class Login(msgspec.Struct, frozen=True):
    """How to log in.

    Attributes:
        host, port: Of the server; the host is a name or an address without brackets.
        user, password: `anonymous` without one.
        tls: Whether and how the session is private.
    """

    host: str
    port: int
    user: str = ANONYMOUS
    password: str = ""
    tls: Tls = Tls.NONE

    def __repr__(self) -> str:
        return f"Login({self.user}@{self.host}:{self.port}, {self.tls.value or 'plain'})"

    @property
    def address(self) -> str:
        """`host:port`, an IPv6 address in brackets."""
        return server_address(self.host, self.port)


def names_of_credentials(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Which variables and keys of a Secret are for FTP, for messages."""
    return login_names(variables, "FTP_", ALIASES)


def login_for(uri: Uri, variables: Mapping[str, str]) -> Login:
    """How to log in at the host of a URI.

    Raises:
        InvalidSpec: The URI has no valid port, or a variable is not valid.
    """
    user, host, port = authority_of(uri)
    own = login_values(variables, ALIASES)
    user = user or own["FTP_USERNAME"]
    if own["FTP_PASSWORD"] and not user:
        remedy = "Set FTP_USERNAME too, or remove the password"
        raise InvalidSpec.of(f"there is a password and no user for {uri}", "", remedy)
    tls = _tls(uri.scheme, port, variables.get("FTP_TLS", ""))
    known = port or (IMPLICIT_PORT if tls is Tls.IMPLICIT else PORT)
    return Login(host, known, user or ANONYMOUS, own["FTP_PASSWORD"], tls)


def _tls(scheme: str, port: int | None, chosen: str) -> Tls:
    if scheme == "ftp":
        return Tls.NONE
    if not chosen:
        return Tls.IMPLICIT if port in {None, IMPLICIT_PORT} else Tls.EXPLICIT
    try:
        return Tls(chosen)
    except ValueError as error:
        remedy = "Set it to explicit (AUTH TLS) or implicit (TLS from the first byte)"
        raise InvalidSpec.of("FTP_TLS is not valid", repr(chosen[:40]), remedy) from error
