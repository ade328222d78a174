"""What a server's refusals mean."""

import pytest

from podferry.contract.errors import (
    AccessDenied,
    AlreadyExists,
    BucketNotFound,
    InvalidSpec,
    NotFound,
    TemporaryError,
    Throttled,
    Unavailable,
)
from podferry.contract.uri import parse_uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.smb.errors import translate_smb
from podferry.storage.smb.nt_status import (
    ConnectionLost,
    LoginRefused,
    NoFiles,
    OldServer,
    ProtocolError,
    StatusError,
    TicketRefused,
    TurnedAway,
)

LOCATION = StoreLocation(parse_uri("smb://nas/share/d"), credentials=("SMB_USERNAME",))


@pytest.mark.parametrize(
    ("raised", "error", "text"),
    [
        (
            StatusError(0xC000006D),
            AccessDenied,
            r"rejects the user.*STATUS_LOGON_FAILURE; read: SMB_USERNAME",
        ),
        (StatusError(0xC0000071), AccessDenied, "may not log in.*STATUS_PASSWORD_EXPIRED"),
        (StatusError(0xC0000418), AccessDenied, "no login by NTLM.*STATUS_NTLM_BLOCKED.*KRB5CCNAME"),
        (StatusError(0xC00000CC), BucketNotFound, "no share for smb://nas/share/d/a"),
        (StatusError(0xC0000022), AccessDenied, "denies access to smb://nas/share/d/a"),
        (StatusError(0xC0000034), NotFound, "no object"),
        (StatusError(0xC0000035), AlreadyExists, "already exists"),
        (StatusError(0xC0000043), Unavailable, "another program has smb://nas/share/d/a open"),
        (StatusError(0xC000007F), Unavailable, "no space left"),
        (StatusError(0xC0000033), InvalidSpec, "does not accept the name"),
        (StatusError(0xC0000257), InvalidSpec, "DFS"),
        (StatusError(0x8000002D), InvalidSpec, "symbolic link"),
        (StatusError(0xC0000205), Throttled, "no more requests"),
        (StatusError(0xC0001234), Unavailable, "NT status 0xC0001234"),
        (LoginRefused("only as a guest"), AccessDenied, "only as a guest"),
        (TicketRefused("expired"), AccessDenied, r"no valid Kerberos ticket .*expired.*kinit"),
        (NoFiles(), InvalidSpec, "has no files"),
        (ProtocolError("no SMB 2"), Unavailable, r"as one of SMB 2 or 3 \(no SMB 2\)"),
        (OldServer("SMB 1"), InvalidSpec, r"no version of SMB in common .*\(SMB 1\).*SMB 2\.1, 3\.0"),
        (TurnedAway("reset"), Unavailable, r"closes the connection .*\(reset\).*max smbd processes"),
        (ConnectionLost("cut"), Unavailable, "does not respond"),
        (TimeoutError(), Unavailable, "no response in time"),
        (ConnectionRefusedError(111, "x"), Unavailable, "connection refused"),
    ],
)
def test_each_has_its_error_and_its_words(raised, error, text):
    with pytest.raises(error, match=text) as caught:
        raise translate_smb(raised, LOCATION, "a")
    assert isinstance(caught.value, TemporaryError) == issubclass(error, TemporaryError)
