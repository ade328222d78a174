"""Where a share is, and who logs in: read from the URI and the credentials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

import msgspec

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.credentials.sources import is_true
from podferry.storage.errors.translate import credentials_read, unused_keys

PORT = 445
USER_KEYS = ("SMB_USERNAME", "username", "azurestorageaccountname")
PASSWORD_KEYS = ("SMB_PASSWORD", "password", "azurestorageaccountkey")
"""The variables, the keys of a Secret of the type kubernetes.io/basic-auth, and those of Azure Files' CSI
driver. Source: kubernetes-sigs/azurefile-csi-driver, docs/driver-parameters.md."""
DOMAIN_KEYS = ("SMB_DOMAIN", "domain")
TICKET_KEY = "KRB5CCNAME"
KEYS = (*USER_KEYS, *PASSWORD_KEYS, *DOMAIN_KEYS, TICKET_KEY, "SMB_GUEST", "SMB_ENCRYPTION")
KERBEROS = ("gssapi", "krb5")
"""The modules that `pip install 'pyspnego[kerberos]'` adds."""


class SmbOptions(msgspec.Struct, frozen=True):
    """How to reach a share. Never printed.

    Attributes:
        host, port, share: Where it is.
        user: With its domain, if it has one; empty for a guest.
        password: Of the user.
        ticket: Kerberos's cache with a ticket, for a login without a password; else empty.
        guest: Whether to log in without an account, and so without signatures.
        encrypt: Whether to encrypt even if the server does not insist.
        names: Of the credentials that were read, for messages.
    """

    host: str
    port: int
    share: str
    user: str
    password: str
    ticket: str
    guest: bool
    encrypt: bool
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"SmbOptions({self.host}:{self.port}, {self.share})"


def read_options(
    uri: Uri, credentials: Mapping[str, str], of_secret: Callable[[], Mapping[str, str]] | None = None
) -> SmbOptions:
    """Where the share of a URI is, and who logs in.

    Args:
        uri: Of the store.
        credentials: Of the environment or a Secret.
        of_secret: Reads them again; None for the environment.

    Raises:
        InvalidSpec: The URI names no share or no valid port.
        CredentialsMissing: There is no user or no password.
    """
    host, port, user = _address(uri)
    share = uri.key.partition("/")[0]
    if not share:
        remedy = f"Write smb://{uri.bucket}/SHARE/path"
        raise InvalidSpec.of("the URI names no share", str(uri), remedy)
    user = user or _first(credentials, USER_KEYS)
    names = tuple(name for name in KEYS if name in credentials)
    guest = is_true(credentials.get("SMB_GUEST", "")) and not user
    ticket = "" if guest or _has(credentials, PASSWORD_KEYS) else _ticket(credentials)
    if not guest and not ticket:
        _check(uri, user, credentials, credentials_read(names, unused_keys(credentials, names, of_secret)))
    domain = _first(credentials, DOMAIN_KEYS)
    account = f"{domain}\\{user}" if domain and user and not set("\\@") & set(user) else user
    encrypt = credentials.get("SMB_ENCRYPTION", "").strip().lower() in {"required", "true", "1", "yes", "on"}
    password = _first(credentials, PASSWORD_KEYS)
    return SmbOptions(host, port, share, account, password, ticket, guest, encrypt, names)


def _address(uri: Uri) -> tuple[str, int, str]:
    """Host, port and user of a URI."""
    user, _, place = uri.bucket.rpartition("@")
    try:
        split = urlsplit(f"smb://{place}")
        return split.hostname or "", split.port or PORT, user.replace(";", "\\")
    except ValueError as error:
        remedy = "Write smb://HOST:PORT/share/path, an IPv6 address in brackets"
        raise InvalidSpec.of("the URI names no valid host and port", str(uri), remedy) from error


def _ticket(credentials: Mapping[str, str]) -> str:
    """Kerberos's cache with a ticket, if its library is installed."""
    cache = credentials.get(TICKET_KEY, "")
    return cache if cache and all(map(find_spec, KERBEROS)) else ""


def _check(uri: Uri, user: str, credentials: Mapping[str, str], measured: str) -> None:
    missing = "user" if not user else "" if _has(credentials, PASSWORD_KEYS) else "password"
    if missing:
        remedy = (
            "Set SMB_USERNAME and SMB_PASSWORD (SMB_DOMAIN for a domain's account) in the environment or in "
            "the Secret; for a share without accounts set SMB_GUEST=true; a ticket of Kerberos needs "
            "KRB5CCNAME, and pip install 'pyspnego[kerberos]'"
        )
        raise CredentialsMissing.of(f"there is no {missing} for {uri}", measured, remedy)


def _first(credentials: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((credentials[key] for key in keys if credentials.get(key)), "")


def _has(credentials: Mapping[str, str], keys: tuple[str, ...]) -> bool:
    return any(key in credentials for key in keys)
