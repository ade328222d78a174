"""What is at a path of an FTP server: complete, or an error.

FTP has one reply, 550, for what is missing, denied or no directory. What it means, the directory above shows.
"""

from __future__ import annotations

import errno
import ftplib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from podferry.contract.errors import Corrupt, Unavailable
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.ftp.facts import MAX_DIGITS, Facts, read_facts, read_lines, tag_of
from podferry.storage.ftp.listed_lines import listed_lines
from podferry.storage.ftp.replies import Endless
from podferry.storage.ftp.session import UNKNOWN_COMMAND, FtpSession
from podferry.storage.object_names import is_temporary, join
from podferry.storage.timeouts_and_limits import MAX_LISTED
from podferry.storage.walk import Directory

T = TypeVar("T")
ATTEMPTS = 3
"""What is created and deleted all the time may be there only between two requests."""


def path_of(uri: Uri, name: str = "") -> str:
    """The path of a name at the server."""
    return f"/{join(uri.key, name)}"


def list_directory(session: FtpSession, uri: Uri, directory: str) -> Directory:
    """What is directly in a directory; links are followed, and those to files are unsized.

    So are files whose size the server does not list: that fact is optional (RFC 3659, section 7.5).

    Raises:
        PermissionError: It may not be entered or listed.
        InvalidSpec: The server's format is unknown.
        Corrupt: A name is none, or that of a link is another file's.
        Unavailable: A link leads nowhere.
        ftplib.Error, OSError, EOFError: The server does not respond as it should.
    """
    path = path_of(uri, directory)
    try:
        found = _listed(session, path)
    except (FileNotFoundError, NotADirectoryError) as error:
        return Directory(problem=error.strerror or "there is no such directory")
    members = [facts for facts in _members(found, uri / directory) if not is_temporary(facts.name)]
    kinds = [_kind(session, uri / directory, path, facts) for facts in members]
    files = [facts for facts, kind in zip(members, kinds, strict=True) if kind == "file"]
    unsized = [facts for facts in files if facts.kind == "link" or facts.size is None]
    dated = _dated(session, path, [facts for facts in files if facts.kind == "file"])
    return Directory(
        tuple(
            Entry(join(directory, name), size, tag_of(size, time))
            for name, _, size, time in dated
            if size is not None
        ),
        tuple(join(directory, facts.name) for facts in unsized),
        tuple(
            sorted(join(directory, f.name) for f, k in zip(members, kinds, strict=True) if k == "directory")
        ),
    )


def _dated(session: FtpSession, path: str, files: list[Facts]) -> list[Facts]:
    """Files with the times at which they were modified, as far as the server knows them."""
    undated = [facts for facts in files if not facts.modified]
    times = session.times(f"{path.rstrip('/')}/{facts.name}" for facts in undated)
    found = dict(zip((facts.name for facts in undated), times, strict=True))
    return [facts if facts.modified else facts._replace(modified=found[facts.name]) for facts in files]


def _kind(session: FtpSession, uri: Uri, path: str, facts: Facts) -> str:
    """What a name is, of a link what it leads to."""
    if facts.kind != "link":
        return facts.kind
    target = f"{path.rstrip('/')}/{facts.name}"
    try:
        session.cwd(target)
    except ftplib.error_perm:
        try:
            session.size(target)
        except ftplib.error_perm as error:
            what, remedy = (
                f"{uri / facts.name} is a dangling link",
                "Mount the volume of its target, or remove it",
            )
            raise Unavailable.of(what, str(error), remedy) from error
        return "file"
    return "directory"


def _listed(session: FtpSession, path: str) -> list[Facts]:
    _enter(session, path)
    try:
        if "MLST" in session.features or not session.features:
            try:
                return [read_facts(line) for line in _bounded(listed_lines(session, "MLSD"))]
            except ftplib.error_perm as error:
                if str(error)[:3] not in UNKNOWN_COMMAND:
                    raise
        return _by_list(session)
    except ftplib.error_perm as error:
        raise PermissionError(errno.EACCES, str(error)[:200], path) from error


def _by_list(session: FtpSession) -> list[Facts]:
    try:
        lines = list(
            _bounded(listed_lines(session, "LIST -a"))
        )  # without the option hidden files are left out
    except ftplib.error_perm:
        lines = list(_bounded(listed_lines(session, "LIST")))
    return read_lines(lines)


def _bounded(lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number >= MAX_LISTED:
            raise Endless(f"a listing has over {MAX_LISTED:,} lines")
        yield line


def _members(found: list[Facts], uri: Uri) -> Iterator[Facts]:
    """What is listed without the directory itself and the one above; raises `Corrupt` for a path."""
    for facts in found:
        if facts.kind in {"cdir", "pdir"} or facts.name in {".", ".."}:
            continue
        if not facts.name or "/" in facts.name:
            what, remedy = (
                f"the server lists a name that is none in {uri}",
                "Rename it at its source, or use sftp://",
            )
            raise Corrupt.of(what, ascii(facts.name)[:200], remedy)
        yield facts


def endless(location: StoreLocation, name: str, measured: str) -> Corrupt:
    """The error for a server that sends without end."""
    where = location.uri / name if name else location.uri
    what = f"what the server of {where} sends has no end"
    return Corrupt.of(what, f"{measured}; {location.address}", "Check that an FTP server is at this address")


def _enter(session: FtpSession, path: str) -> None:
    asked(session, path, session.cwd, wanted="directory")


def asked(session: FtpSession, path: str, ask: Callable[[str], T], wanted: str = "file") -> T:
    """Ask about a path; again if it seems to be denied: another session may just have created it.

    Raises:
        FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError: What a 550 means.
    """
    for attempt in range(ATTEMPTS):
        try:
            return ask(path)
        except ftplib.error_perm as error:
            reason = explained(session, path, error, wanted)
            if not isinstance(reason, PermissionError) or attempt == ATTEMPTS - 1:
                raise reason from error
    raise AssertionError("unreachable: the last attempt returns or raises")


def explained(session: FtpSession, path: str, error: ftplib.Error, wanted: str = "file") -> OSError:
    """What a 550 means: a path is missing, something else, or may not be opened."""
    reply = str(error)[:200]
    if path.endswith("/"):
        return PermissionError(errno.EACCES, reply, path)
    try:
        found = _listed_as(session, path)
    except (FileNotFoundError, NotADirectoryError):
        found = None
    if found is None:
        return FileNotFoundError(errno.ENOENT, reply, path)
    if found.kind not in {wanted, "link"}:
        kind = NotADirectoryError if wanted == "directory" else IsADirectoryError
        return kind(errno.ENOTDIR, f"it is a {found.kind}", path)
    return PermissionError(errno.EACCES, reply, path)


def _listed_as(session: FtpSession, path: str) -> Facts | None:
    """What the directory above lists under a path's name."""
    parent, _, name = path.rpartition("/")
    return next((facts for facts in _listed(session, parent or "/") if facts.name == name), None)


def file_entry(session: FtpSession, path: str, name: str, size: int | None = None) -> Entry:
    """A file's size and tag; `size` is given if it is known.

    Raises:
        FileNotFoundError, IsADirectoryError, PermissionError: There is no file, or it may not be read.
    """
    if "MLST" in session.features:
        facts = _facts_of(session, path)
        if facts.kind == "file" and facts.size is not None and facts.modified:
            return Entry(name, facts.size, tag_of(facts.size, facts.modified))
        if facts.kind == "directory":
            raise IsADirectoryError(errno.EISDIR, "a directory", path)
    if size is None:
        size = asked(session, path, lambda path: _size(session, path))
    if size is None or not 0 <= size < 10**MAX_DIGITS:
        raise ftplib.error_proto(f"213 without a size: {str(size)[:20]}")
    (time,) = session.times([path])
    return Entry(name, size, tag_of(size, time))


def _size(session: FtpSession, path: str) -> int | None:
    """A file's size; of a server that does not know the command, as its directory is listed."""
    try:
        return session.size(path)
    except ftplib.error_perm as error:
        if str(error)[:3] not in UNKNOWN_COMMAND:
            raise
        found = _listed_as(session, path)
        if found is None or found.kind != "file":
            raise
        return found.size


def is_there(session: FtpSession, path: str) -> bool:
    """Whether the server finds something under a path, in whatever spelling; what it denies is not there."""
    commands = (f"MLST {path}",) if "MLST" in session.features else (f"SIZE {path}", f"CWD {path}")
    for command in commands:
        with suppress(ftplib.error_perm):
            session.sendcmd(command)
            return True
    return False


def _facts_of(session: FtpSession, path: str) -> Facts:
    lines = asked(session, path, lambda path: session.sendcmd(f"MLST {path}")).splitlines()
    if len(lines) < 3:
        raise ftplib.error_proto(f"{lines[0][:100]}: MLST without facts")
    return read_facts(lines[1])
