"""Writes and deletes files in one FTP session. Calls block."""

from __future__ import annotations

import ftplib
import socket
from contextlib import suppress

from podferry.storage.errors.translate import StoreLocation, store_error
from podferry.storage.ftp.directories import asked, file_entry, path_of
from podferry.storage.ftp.refused_writes import (
    broken_upload,
    disk_failure,
    make_directories,
    raise_failed_upload,
    refused_file,
    refused_rename,
)
from podferry.storage.ftp.session import FtpSession
from podferry.storage.object_names import temporary_name
from podferry.storage.write_body import BodySource

NOT_STORED = ("550", "553", "450", "451")
"""Replies to a name that cannot be written, such as one whose directory is missing."""


def write_file(session: FtpSession, location: StoreLocation, name: str, source: BodySource) -> None:
    """Write a file under a temporary name, and rename it; an existing one is replaced.

    Raises:
        Unavailable: The server's disk is full, or fails.
        PermissionError, NameRefused: The server refuses to write here, or to write this name.
        ftplib.Error, OSError, EOFError: The server's error, or that of the connection.
    """
    try:
        _write(session, path_of(location.uri, name), path_of(location.uri, temporary_name(name)), source)
    except ftplib.Error as error:
        if kind := disk_failure(error):
            raise store_error(kind, location, name, ascii(str(error)[:200])[1:-1]) from error
        raise


def _write(session: FtpSession, path: str, temporary: str, source: BodySource) -> None:
    try:
        _store(session, temporary, source)
        _rename(session, temporary, path)
    except BaseException:
        with suppress(Exception):  # the first error counts
            session.delete(temporary)
        raise


def exists(session: FtpSession, path: str) -> bool:
    """Whether there is a file."""
    try:
        file_entry(session, path, "")
    except (FileNotFoundError, IsADirectoryError):
        return False
    except PermissionError:  # listed, such as one that another writer has just created
        return True
    return True


def delete_file(session: FtpSession, path: str) -> None:
    """Delete a file if it exists."""
    with suppress(FileNotFoundError, IsADirectoryError):
        asked(session, path, session.delete)


def _store(session: FtpSession, path: str, source: BodySource) -> None:
    data, broken = _opened(session, path), None
    try:
        while broken is None and (part := source.next_part()):
            broken = _sent(session, data, part)
    except BaseException:
        _abandon(session, data)
        raise
    try:
        _end(session, data, broken)
    except ftplib.Error as error:
        raise_failed_upload(session, path, error)


def _opened(session: FtpSession, path: str) -> socket.socket:
    """The connection for a new file, whose directories are created if need be."""
    _enter(session, path)
    try:
        return session.transfercmd(f"STOR {path}")
    except ftplib.Error as error:
        if str(error)[:3] not in NOT_STORED:
            raise
    make_directories(session, path)
    try:
        return session.transfercmd(f"STOR {path}")
    except ftplib.error_perm as error:
        raise refused_file(session, path, error) from error


def _enter(session: FtpSession, path: str) -> None:
    """Create the directories above a path unless they are there.

    Some servers do not refuse an upload into a missing directory: rclone takes it, and fails at its end.
    """
    directory = path.rpartition("/")[0] or "/"
    if directory not in {"/", session.directory}:
        try:
            session.cwd(directory)
        except ftplib.error_perm:
            make_directories(session, path)


def _end(session: FtpSession, data: socket.socket, broken: OSError | None) -> None:
    if broken is not None:
        raise broken_upload(session, data, broken) from broken
    session.end(data)


def _sent(session: FtpSession, data: socket.socket, part: bytes) -> OSError | None:
    """Send a part; returns the connection's error, which is not to be taken for one of the body."""
    try:
        data.sendall(part)
    except OSError as error:
        return error
    session.renew()
    return None


def _abandon(session: FtpSession, data: socket.socket) -> None:
    """End an upload whose body has failed; the session remains."""
    with suppress(Exception):  # the caller raises what the body has raised
        session.end_early(data)


def _rename(session: FtpSession, old: str, new: str) -> None:
    try:
        session.rename(old, new)
    except ftplib.error_perm as error:
        reason = refused_rename(session, old, error)
        # Before anything is deleted: where nothing may be renamed, nothing would be there afterwards.
        if isinstance(reason, PermissionError) or not exists(session, new):
            raise reason from error
        delete_file(session, new)  # Microsoft's servers refuse a name that is taken
        session.rename(old, new)
