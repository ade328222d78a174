"""Which host an `sftp://` URI names, who logs in there, and how its host key is checked.

Nothing of this machine takes part by itself: no agent, and neither keys nor `known_hosts` of a directory that
`SFTP_SSH_DIR` does not name. In the environment of a user that is `~/.ssh`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.credentials.login import authority_of, login_names, login_values, server_address
from podferry.storage.credentials.sources import is_true
from podferry.storage.errors.translate import credentials_read

PORT = 22
KEY_FILES = ("id_ed25519", "id_ecdsa", "id_rsa")
"""Of `~/.ssh`, in the order in which OpenSSH tries them."""
ALIASES = {
    "SFTP_USERNAME": "username",
    "SFTP_PASSWORD": "password",
    "SFTP_PRIVATE_KEY": "ssh-privatekey",
    "SFTP_KNOWN_HOSTS": "known_hosts",
}
"""Keys of Secrets of the types kubernetes.io/basic-auth and kubernetes.io/ssh-auth; the last is Flux's."""
IGNORE_HOST_KEY = "SFTP_INSECURE_IGNORE_HOST_KEY"


class Login(msgspec.Struct, frozen=True):
    """How to log in.

    Attributes:
        host, port: Of the server; the host is a name or an address without brackets.
        user: Its name there.
        password: Or empty.
        private_keys: Texts of keys, in any format that OpenSSH writes.
        passphrase: Of the keys, or empty.
        known_hosts: Lines of known host keys; None if any key is accepted.
    """

    host: str
    port: int
    user: str
    password: str = ""
    private_keys: tuple[str, ...] = ()
    passphrase: str = ""
    known_hosts: str | None = None

    def __repr__(self) -> str:
        return f"Login({self.user}@{self.host}:{self.port})"

    @property
    def address(self) -> str:
        """`host:port`, an IPv6 address in brackets."""
        return server_address(self.host, self.port)


def names_of_credentials(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Which variables and keys of a Secret are for SFTP, for messages."""
    return login_names(variables, "SFTP_", ALIASES)


def login_for(uri: Uri, variables: Mapping[str, str], unused: Sequence[str] = ()) -> Login:
    """How to log in at the host of a URI. Reads files that variables name.

    Args:
        uri: Of the store.
        variables: Of the environment or a Secret.
        unused: Keys of the Secret that are none of SFTP's, for messages.

    Raises:
        InvalidSpec: The URI has no valid port, or a file cannot be read.
        CredentialsMissing: There is no user, neither password nor key, or no host key to check against.
    """
    user, host, given_port = authority_of(uri)
    port = given_port or PORT
    own = login_values(variables, ALIASES)
    folder = Path(variables["SFTP_SSH_DIR"]) if variables.get("SFTP_SSH_DIR") else None
    user = user or own["SFTP_USERNAME"]
    keys = _private_keys(own["SFTP_PRIVATE_KEY"], folder, bool(own["SFTP_PASSWORD"]))
    read = credentials_read(names_of_credentials(variables), unused)
    if not user:
        remedy = "Set SFTP_USERNAME in the environment or in the Secret, or write sftp://USER@HOST/…"
        raise CredentialsMissing.of(f"there is no user for {uri}", read, remedy)
    if not own["SFTP_PASSWORD"] and not keys:
        remedy = "Set SFTP_PRIVATE_KEY or SFTP_PASSWORD in the environment or in the Secret"
        raise CredentialsMissing.of(f"there is neither a key nor a password for {uri}", read, remedy)
    login = Login(host, port, user, own["SFTP_PASSWORD"], keys, variables.get("SFTP_PASSPHRASE", ""))
    if is_true(variables.get(IGNORE_HOST_KEY, "")):
        return login
    known = _known_hosts(own["SFTP_KNOWN_HOSTS"], folder)
    if not known.strip():
        remedy = (
            f"Compare the output of `ssh-keyscan -p {port} {host}` with what the server's administrator "
            "states, and set SFTP_KNOWN_HOSTS to it in the environment or in the Secret; "
            f"{IGNORE_HOST_KEY}=true accepts any server"
        )
        what = f"there is no host key to check the server of {uri} against"
        raise CredentialsMissing.of(what, read, remedy)
    return msgspec.structs.replace(login, known_hosts=known)


def _private_keys(value: str, folder: Path | None, has_password: bool) -> tuple[str, ...]:
    if value:
        return (_content("SFTP_PRIVATE_KEY", value, "-----BEGIN"),)
    if folder is None or has_password:
        return ()
    files = (folder / name for name in KEY_FILES)
    return tuple(_text("SFTP_SSH_DIR", file) for file in files if file.is_file())


def _known_hosts(value: str, folder: Path | None) -> str:
    if value:
        return _content("SFTP_KNOWN_HOSTS", value, " ")
    file = folder / "known_hosts" if folder else None
    return _text("SFTP_SSH_DIR", file) if file and file.is_file() else ""


def _content(name: str, value: str, sign: str) -> str:
    """A value, or the file that it names."""
    return value if sign in value else _text(name, Path(value).expanduser())


def _text(name: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what, remedy = (
            f"the file that {name} names cannot be read",
            f"Set {name} to the content, or to a path",
        )
        raise InvalidSpec.of(what, type(error).__name__, remedy) from error
