"""What stands between this client and an SFTP server, in words: the login, the host key, the protocol."""

from __future__ import annotations

import asyncssh

from podferry.contract.errors import AccessDenied, FerryError, InvalidSpec, Unavailable
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.sftp.login import IGNORE_HOST_KEY, Login
from podferry.storage.sftp.messages import ProtocolError

CUTS = (ConnectionError, TimeoutError, asyncssh.DisconnectError, asyncssh.ChannelOpenError)
"""After these, another connection may succeed; those that cannot are named by `login_error` first."""


def login_error(error: BaseException, login: Login, location: StoreLocation) -> FerryError | None:
    """The error for a server that does not let this client in, or None for an outage."""
    where = f"user {login.user}; {location.address}"
    if isinstance(error, asyncssh.PermissionDenied):
        offered = [f"{len(login.private_keys)} key"] * bool(login.private_keys) + ["a password"] * bool(
            login.password
        )
        measured = f"offered: {' and '.join(offered)}; {where}; read: {', '.join(location.credentials)}"
        remedy = "Check the user and its password, or add the public key to authorized_keys at the server"
        return AccessDenied.of(f"the server rejects the login for {location.uri}", measured, remedy)
    if isinstance(error, asyncssh.KeyExchangeFailed | asyncssh.ProtocolNotSupported):
        remedy = "Update the server, or its list of algorithms"
        what = f"the server of {location.uri} has no algorithm in common with this client"
        return InvalidSpec.of(what, f"{error.reason[:200]}; {where}", remedy)
    if isinstance(error, asyncssh.ChannelOpenError | ProtocolError):
        what = f"the server of {location.uri} lets the user in but does not offer SFTP"
        remedy = "Have it offer the subsystem `sftp`; a login script must not print anything"
        return InvalidSpec.of(what, f"{error}; {where}", remedy)
    return None


def host_key_error(presented: str, known: bool, location: StoreLocation, answered: bool) -> FerryError:
    """The error for a host key that is not the known one.

    Args:
        presented: The key's kind and fingerprint.
        known: Whether other keys of the host are known.
        location: Of the store.
        answered: Whether this host was trusted before: then another one has taken its address for a while.
    """
    what = (
        f"the server of {location.uri} is not the known one: its host key differs"
        if known
        else f"the host key of the server of {location.uri} is not known"
    )
    remedy = (
        "Compare the key with what the server's administrator states; if it is right, store it as "
        f"SFTP_KNOWN_HOSTS. {IGNORE_HOST_KEY}=true accepts any server"
    )
    measured = f"it presents {presented}; {location.address}"
    return (Unavailable if answered else InvalidSpec).of(what, measured, remedy)


def private_key_error(error: Exception) -> InvalidSpec:
    """The error for a key that cannot be read; nothing of it is shown."""
    remedy = "Store the file as it is, with its line breaks; set SFTP_PASSPHRASE if it needs one"
    return InvalidSpec.of("SFTP_PRIVATE_KEY cannot be used", str(error)[:200], remedy)
