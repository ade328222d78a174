"""What a server answers a request with: the codes of MS-ERREF 2.3 that mean something here."""

from __future__ import annotations

SUCCESS = 0x00000000
PENDING = 0x00000103
"""An interim response: another one follows."""
BUFFER_OVERFLOW = 0x80000005
"""The answer is longer than the buffer, and was cut."""
NO_MORE_FILES = 0x80000006
MORE_PROCESSING_REQUIRED = 0xC0000016
END_OF_FILE = 0xC0000011
NO_SUCH_FILE = 0xC000000F
OBJECT_PATH_NOT_FOUND = 0xC000003A
NOT_SUPPORTED = 0xC00000BB
SHARING_VIOLATION = 0xC0000043
DELETE_PENDING = 0xC0000056
ACCESS_DENIED = 0xC0000022
NOT_A_DIRECTORY = 0xC0000103

NAMES = {
    0x8000002D: "STATUS_STOPPED_ON_SYMLINK",
    BUFFER_OVERFLOW: "STATUS_BUFFER_OVERFLOW",
    NO_MORE_FILES: "STATUS_NO_MORE_FILES",
    0xC0000008: "STATUS_INVALID_HANDLE",
    0xC000000D: "STATUS_INVALID_PARAMETER",
    NO_SUCH_FILE: "STATUS_NO_SUCH_FILE",
    0xC0000010: "STATUS_INVALID_DEVICE_REQUEST",
    END_OF_FILE: "STATUS_END_OF_FILE",
    MORE_PROCESSING_REQUIRED: "STATUS_MORE_PROCESSING_REQUIRED",
    ACCESS_DENIED: "STATUS_ACCESS_DENIED",
    0xC0000033: "STATUS_OBJECT_NAME_INVALID",
    0xC0000034: "STATUS_OBJECT_NAME_NOT_FOUND",
    0xC0000035: "STATUS_OBJECT_NAME_COLLISION",
    OBJECT_PATH_NOT_FOUND: "STATUS_OBJECT_PATH_NOT_FOUND",
    0xC000003B: "STATUS_OBJECT_PATH_SYNTAX_BAD",
    SHARING_VIOLATION: "STATUS_SHARING_VIOLATION",
    0xC0000044: "STATUS_QUOTA_EXCEEDED",
    0xC0000054: "STATUS_FILE_LOCK_CONFLICT",
    DELETE_PENDING: "STATUS_DELETE_PENDING",
    0xC0000064: "STATUS_NO_SUCH_USER",
    0xC000006A: "STATUS_WRONG_PASSWORD",
    0xC000006D: "STATUS_LOGON_FAILURE",
    0xC000006E: "STATUS_ACCOUNT_RESTRICTION",
    0xC000006F: "STATUS_INVALID_LOGON_HOURS",
    0xC0000070: "STATUS_INVALID_WORKSTATION",
    0xC0000071: "STATUS_PASSWORD_EXPIRED",
    0xC0000072: "STATUS_ACCOUNT_DISABLED",
    0xC000007F: "STATUS_DISK_FULL",
    0xC000009A: "STATUS_INSUFFICIENT_RESOURCES",
    0xC00000A2: "STATUS_MEDIA_WRITE_PROTECTED",
    0xC00000AC: "STATUS_PIPE_NOT_AVAILABLE",
    0xC00000B5: "STATUS_IO_TIMEOUT",
    0xC00000BA: "STATUS_FILE_IS_A_DIRECTORY",
    NOT_SUPPORTED: "STATUS_NOT_SUPPORTED",
    0xC00000C9: "STATUS_NETWORK_NAME_DELETED",
    0xC00000CC: "STATUS_BAD_NETWORK_NAME",
    0xC00000D0: "STATUS_REQUEST_NOT_ACCEPTED",
    0xC00000E9: "STATUS_UNEXPECTED_IO_ERROR",
    0xC0000101: "STATUS_DIRECTORY_NOT_EMPTY",
    NOT_A_DIRECTORY: "STATUS_NOT_A_DIRECTORY",
    0xC0000106: "STATUS_NAME_TOO_LONG",
    0xC000015B: "STATUS_LOGON_TYPE_NOT_GRANTED",
    0xC0000184: "STATUS_INVALID_DEVICE_STATE",
    0xC0000185: "STATUS_IO_DEVICE_ERROR",
    0xC0000203: "STATUS_USER_SESSION_DELETED",
    0xC0000205: "STATUS_INSUFF_SERVER_RESOURCES",
    0xC0000224: "STATUS_PASSWORD_MUST_CHANGE",
    0xC0000234: "STATUS_ACCOUNT_LOCKED_OUT",
    0xC0000257: "STATUS_PATH_NOT_COVERED",
    0xC0000275: "STATUS_NOT_A_REPARSE_POINT",
    0xC000035C: "STATUS_NETWORK_SESSION_EXPIRED",
    0xC05D0000: "STATUS_SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP",
    0xC0000418: "STATUS_NTLM_BLOCKED",
}

SESSION_ENDED = frozenset({0xC0000203, 0xC000035C, 0xC00000C9})
"""The session or its share is gone: a new connection may have both again."""


def status_name(status: int) -> str:
    """The name of a code, or the code."""
    return NAMES.get(status, f"NT status 0x{status:08X}")


class StatusError(Exception):
    """A server has refused a request; `podferry.storage.smb.errors` says what that means."""

    def __init__(self, status: int) -> None:
        super().__init__(status_name(status))
        self.status = status


class ConnectionLost(ConnectionError):
    """The connection has ended while requests were on their way; some may have had an effect."""


class ClosedByServer(ConnectionLost):
    """The server, or what is between, has ended the connection."""


class ProtocolError(ConnectionLost):
    """What arrived is no response of an SMB server, or has not the signature that it must have."""


class TurnedAway(ProtocolError):
    """The server has ended the connection before it answered anything."""


class OldServer(ProtocolError):
    """The server speaks only versions of SMB that are too old; the text says which."""


class LoginRefused(Exception):
    """The login cannot work as it is configured; the text says why."""


class TicketRefused(LoginRefused):
    """The login with a ticket of Kerberos fails at the client."""


class NoFiles(Exception):
    """The share has no files: it is a printer or a pipe."""
