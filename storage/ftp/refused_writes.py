"""Why a server does not write a file. FTP refuses with 550 or 553, be it the name or the permission.

What it says of other names shows which. That is asked after an error only.
"""

from __future__ import annotations

import ftplib
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import NoReturn

from podferry.storage.ftp.directories import explained
from podferry.storage.ftp.session import FtpSession
from podferry.storage.object_names import temporary_name

MISSING_OR_DENIED, BAD_NAME = "550", "553"
"""vsftpd also replies 553 where its user may not write. Source: RFC 959, section 4.2.2."""
LOCAL_ERROR = "451"
"""Of the server's own disk: all that vsftpd says when that is full."""
BUSY = "450"
"""All that rclone says of a file that it cannot open, which it tries once the upload has begun."""
NO_SPACE = ("no space left", "quota exceeded")
"""Words of `ENOSPC` and `EDQUOT`, which pyftpdlib sends with 426."""
LOST = ("421", "425", "426")
"""Replies about a connection: its own error says more."""


class NameRefused(OSError):
    """The server takes other names in the same directory."""


def refused_file(session: FtpSession, path: str, error: ftplib.error_perm) -> Exception:
    """What it means that a new file is refused, although its directories were created as far as possible."""
    if (code := str(error)[:3]) not in {MISSING_OR_DENIED, BAD_NAME}:
        return error
    entered, reason = _entered(session, path, error)
    # What is written first has an ordinary name.
    if isinstance(reason, PermissionError) or (reason is None and code == MISSING_OR_DENIED):
        return _denied(error)
    return _by_name(session, entered, error)


def raise_failed_upload(session: FtpSession, path: str, error: ftplib.Error) -> NoReturn:
    """Raise what it means that a server takes an upload, and says only at its end that it has failed.

    450 is an outage unless the server refuses other names, too, or still has no such directory.
    """
    if isinstance(error, ftplib.error_perm):
        raise refused_file(session, path, error) from error
    if str(error)[:3] != BUSY or disk_failure(error):
        raise error
    entered, reason = _entered(session, path, error)
    if isinstance(reason, PermissionError):
        raise _denied(error) from error
    if refusal := _refusal(session, entered):
        raise _denied(refusal) from refusal
    if reason is not None:
        # It may have been there when the session entered it: rclone forgets empty ones of object stores.
        make_directories(session, path)
        if _entered(session, path, error)[1] is not None:
            raise NameRefused(str(error)) from error
    raise error


def _entered(session: FtpSession, path: str, error: ftplib.Error) -> tuple[str, OSError | None]:
    """The deepest directory above a path that can be entered, and why the next one cannot."""
    entered = "/"
    for directory in directories_above(path):
        try:
            session.cwd(directory)
        except ftplib.error_perm:
            return entered, explained(session, directory, error, "directory")
        entered = directory
    return entered, None


def refused_rename(session: FtpSession, path: str, error: ftplib.error_perm) -> Exception:
    """What it means that a file that was just written cannot be renamed."""
    if str(error)[:3] not in {MISSING_OR_DENIED, BAD_NAME}:
        return error
    other = f"/{temporary_name(path[1:])}"
    try:
        session.rename(path, other)
        session.rename(other, path)
    except ftplib.error_perm:
        return _denied(error)
    return NameRefused(str(error))


def directories_above(path: str) -> Iterator[str]:
    """The directories above a path, the root's first member first."""
    parts = path.split("/")[1:-1]
    return ("/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1))


def make_directories(session: FtpSession, path: str) -> None:
    """Create the directories above a path, as far as the server lets this user."""
    for directory in directories_above(path):
        with suppress(ftplib.error_perm):  # it exists, or the next command names the reason
            session.mkd(directory)


def broken_upload(session: FtpSession, data: socket.socket, broken: OSError) -> Exception:
    """Why the connection of an upload has ended: what the server says of its disk, or the error itself."""
    try:
        data.close()
        reply = session.getmultiline()
    except (ftplib.Error, OSError, EOFError):
        return broken
    if reply[:1] not in {"4", "5"} or (reply[:3] in LOST and not _says_full(reply)):
        return broken
    return ftplib.error_temp(reply) if reply[0] == "4" else ftplib.error_perm(reply)


def disk_failure(error: ftplib.Error) -> str:
    """The kind of an error if a reply is about the server's disk, or empty."""
    reply = str(error)
    return "full" if _says_full(reply) else "unwritten" if reply.startswith(LOCAL_ERROR) else ""


def _says_full(reply: str) -> bool:
    return any(words in reply.lower() for words in NO_SPACE)


def _by_name(session: FtpSession, directory: str, error: ftplib.Error) -> OSError:
    return _denied(error) if _refusal(session, directory) else NameRefused(str(error))


def _refusal(session: FtpSession, directory: str) -> ftplib.error_perm | None:
    """Why a directory takes no other name, that of a directory without content, or None if it does."""
    probe = f"{directory.rstrip('/')}/podferry-{os.urandom(8).hex()}"
    try:
        session.mkd(probe)
    except ftplib.error_perm as refusal:
        return refusal
    with suppress(ftplib.error_perm):
        session.rmd(probe)
    return None


def _denied(error: ftplib.Error) -> PermissionError:
    return PermissionError(str(error))  # without a number: messages then show the reply
