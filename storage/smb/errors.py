"""What a server's refusal means: the error, and what the user reads. Source of the codes: MS-ERREF 2.3.1."""

from __future__ import annotations

from typing import NamedTuple

from podferry.contract.errors import (
    AccessDenied,
    BucketNotFound,
    FerryError,
    InvalidSpec,
    Problem,
    Throttled,
    Unavailable,
)
from podferry.storage.errors.translate import StoreLocation, credentials_read, store_error, translate
from podferry.storage.smb.negotiation import VERSIONS
from podferry.storage.smb.nt_status import (
    LoginRefused,
    NoFiles,
    OldServer,
    ProtocolError,
    StatusError,
    TicketRefused,
    TurnedAway,
    status_name,
)


class Rule(NamedTuple):
    """The error's type, what is wrong with `{}`, and the remedy."""

    error: type[FerryError]
    sentence: str
    remedy: str


KINDS = {
    **dict.fromkeys((0xC0000034, 0xC000003A, 0xC000000F, 0xC0000103, 0xC00000BA), "missing"),
    0xC0000035: "exists",
    0xC0000022: "denied",
    0xC00000A2: "denied",
    **dict.fromkeys((0xC0000033, 0xC000003B, 0xC0000106), "name"),
    **dict.fromkeys((0xC000007F, 0xC0000044), "full"),
    **dict.fromkeys((0xC00000BB, 0xC0000010), "unsupported"),
}
"""Kinds of `podferry.storage.errors.rules`."""

WRONG_LOGIN = Rule(
    AccessDenied,
    "the server rejects the user or the password for {}",
    "Check SMB_USERNAME, SMB_PASSWORD and SMB_DOMAIN",
)
NO_TICKET = Rule(
    AccessDenied,
    "there is no valid Kerberos ticket for {}",
    "Run kinit, check KRB5CCNAME, and name the host as the server's principal cifs/HOST does",
)
NO_NTLM = Rule(
    AccessDenied,
    "the server takes no login by NTLM for {}",
    "Log in by Kerberos: set KRB5CCNAME in the place of the password; or have NTLM allowed for this account",
)
BLOCKED = Rule(
    AccessDenied,
    "the account may not log in for {}",
    "Have it enabled, or its password renewed, by the server's administrator",
)
OPEN_ELSEWHERE = Rule(
    Unavailable, "another program has {} open", "Close it there; requests are retried until then"
)
BUSY = Rule(
    Throttled,
    "the server takes no more requests or connections for {}",
    "Try again later, or have its limit of clients raised",
)
NO_FILES = Rule(InvalidSpec, "the share of {} has no files", "Name a share of files, not a printer or IPC$")
TURNED_AWAY = Rule(
    Unavailable,
    "the server closes the connection for {} before it says anything",
    "Check host and port (445), and that SMB 2 or later is enabled; or it has as many clients as it takes: "
    "end some, or raise its limit (Samba: `max smbd processes`)",
)
OLD_SERVER = Rule(
    InvalidSpec,
    "the server has no version of SMB in common with podferry for {}",
    f"Enable one at the server (Samba: `server max protocol`): podferry speaks SMB {VERSIONS}",
)
NOT_SMB = Rule(
    Unavailable,
    "the server does not respond for {} as one of SMB 2 or 3",
    "Check host and port (445), that SMB 2 or later is enabled, and what is between",
)
BY_TYPE = {
    TicketRefused: NO_TICKET,
    LoginRefused: WRONG_LOGIN,
    NoFiles: NO_FILES,
    TurnedAway: TURNED_AWAY,
    OldServer: OLD_SERVER,
    ProtocolError: NOT_SMB,
}
"""The first type that an exception has decides: subclasses come before their bases."""

RULES = {
    **dict.fromkeys((0xC000006D, 0xC000006A, 0xC0000064), WRONG_LOGIN),
    **dict.fromkeys(
        (0xC000006E, 0xC000006F, 0xC0000070, 0xC0000071, 0xC0000072, 0xC000015B, 0xC0000224, 0xC0000234),
        BLOCKED,
    ),
    0xC0000418: NO_NTLM,
    **dict.fromkeys((0xC0000043, 0xC0000054, 0xC0000056), OPEN_ELSEWHERE),
    **dict.fromkeys((0xC000009A, 0xC0000205, 0xC00000D0), BUSY),
    0xC00000CC: Rule(
        BucketNotFound, "there is no share for {}", "Check its name: the first part of the URI's path"
    ),
    0xC0000257: Rule(
        InvalidSpec,
        "{} is a link of a DFS namespace",
        "Name the server and the share that it leads to: `dfsutil link` shows them",
    ),
    0x8000002D: Rule(
        InvalidSpec,
        "{} is a symbolic link that the server does not follow",
        "Name its target, or replace the link by the file",
    ),
}


def translate_smb(error: BaseException, location: StoreLocation, name: str = "") -> FerryError:
    """The error for what a connection raised; raise it `from` that."""
    if isinstance(error, StatusError):
        return _status_error(error.status, location, name)
    rule = next((rule for kind, rule in BY_TYPE.items() if isinstance(error, kind)), None)
    if rule is not None:
        return _error(rule, location, name, str(error))
    return translate(error, location, name)


def _status_error(status: int, location: StoreLocation, name: str) -> FerryError:
    if status in RULES:
        return _error(RULES[status], location, name, status_name(status))
    return store_error(KINDS.get(status, "unreachable"), location, name, status_name(status))


def _error(rule: Rule, location: StoreLocation, name: str, evidence: str) -> FerryError:
    measured = [evidence]
    if issubclass(rule.error, AccessDenied):
        measured.append(credentials_read(location.credentials))
    subject = str(location.uri / name) if name else str(location.uri)
    return rule.error(Problem(rule.sentence.format(subject), "; ".join(filter(None, measured)), rule.remedy))
