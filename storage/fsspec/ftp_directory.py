"""Lists one directory of an FTP server: complete, or an error.

FTP has one reply, 550, for what is missing, denied or no directory. A server says what is in a directory by
MLSD, which has types and sizes, or by LIST, whose text is for people and for which no format is defined.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from ftplib import FTP, error_perm
from typing import Any

from podferry.contract.errors import InvalidSpec, Unavailable

Info = dict[str, Any]
"""As fsspec describes a file: `name`, `type`, `size` and `modify`."""

NOT_IMPLEMENTED = ("500", "501", "502", "504")
"""Replies to a command that the server does not know. Source: RFC 959, 4.2.1."""
KIND_BY_MODE = {"d": "directory", "-": "file", "l": "link"}
"""The first letter of a line of LIST; others are devices and sockets."""
MODE, SIZE, TIME, NAME = 0, 4, slice(5, 8), 8
"""Fields of a line of LIST as `ls -l` writes it, which nearly all servers imitate."""


def list_ftp_directory(ftp: FTP, path: str) -> list[Info]:
    """What is directly in a directory; links are followed.

    Raises:
        FileNotFoundError: There is no such directory.
        PermissionError: It may not be entered or listed.
        InvalidSpec: The server's format is unknown.
        ftplib.Error, OSError, EOFError: The server does not respond as it should.
    """
    found = [info for info in _listed(ftp, path) if info["type"] in {"file", "directory", "link"}]
    return [_followed(ftp, info) if info["type"] == "link" else info for info in found]


def ftp_file_info(ftp: FTP, path: str) -> Info:
    """What the directory above says about a path; raises as `list_ftp_directory`."""
    if path == "/":
        return {"name": path, "type": "directory", "size": 0}
    found = list_ftp_directory(ftp, path.rpartition("/")[0] or "/")
    info = next((info for info in found if info["name"] == path), None)
    if info is None:
        raise FileNotFoundError(errno.ENOENT, "not listed", path)
    return info


def _listed(ftp: FTP, path: str) -> list[Info]:
    _enter(ftp, path)
    try:
        try:
            found = list(_by_mlsd(ftp))
        except error_perm as error:
            if str(error)[:3] not in NOT_IMPLEMENTED:
                raise
            found = list(_by_list(ftp))
    except error_perm as error:
        raise _denied(error, path) from error
    return [{**info, "name": f"{path.rstrip('/')}/{info['name']}"} for info in found]


def _enter(ftp: FTP, path: str) -> None:
    try:
        ftp.cwd(path)
    except error_perm as error:
        if path != "/" and not _is_directory(ftp, path):
            raise FileNotFoundError(errno.ENOENT, str(error), path) from error
        raise _denied(error, path) from error


def _is_directory(ftp: FTP, path: str) -> bool:
    """Whether the directory above lists a path as a directory, or as a link to something."""
    parent, _, name = path.rpartition("/")
    try:
        found = _listed(ftp, parent or "/")
    except FileNotFoundError:
        return False
    return any(info["name"].rpartition("/")[2] == name and info["type"] != "file" for info in found)


def _denied(error: Exception, path: str) -> PermissionError:
    return PermissionError(errno.EACCES, str(error), path)


def _by_mlsd(ftp: FTP) -> Iterator[Info]:
    for name, facts in ftp.mlsd():
        kind = facts.get("type", "").lower()
        if kind not in {"cdir", "pdir"} and name not in {".", ".."}:
            # `OS.unix=slink:/target` and the like
            known = {"dir": "directory", "file": "file"}.get(kind, "link" if "link" in kind else kind)
            yield {"name": name, "type": known, "size": facts.get("size"), "modify": facts.get("modify")}


def _by_list(ftp: FTP) -> Iterator[Info]:
    lines: list[str] = []
    try:
        reply = ftp.retrlines("LIST -a", lines.append)  # without the option hidden files are left out
    except error_perm:
        reply = ftp.retrlines("LIST", lines.append)
    if "failed" in reply.lower():  # vsftpd: `226 Transfer done (but failed to open directory).`
        raise PermissionError(errno.EACCES, reply)
    for line in lines:
        fields = line.split(maxsplit=NAME)
        if len(fields) == 2 and fields[0] == "total":
            continue
        if len(fields) <= NAME:
            raise InvalidSpec.of("the FTP server lists in an unknown format", repr(line[:100]), "Use sftp://")
        name = fields[NAME].partition(" -> ")[0] if fields[MODE][0] == "l" else fields[NAME]
        if name not in {".", ".."}:
            kind = KIND_BY_MODE.get(fields[MODE][0], "other")
            yield {"name": name, "type": kind, "size": fields[SIZE], "modify": " ".join(fields[TIME])}


def _followed(ftp: FTP, link: Info) -> Info:
    """What a link leads to.

    Raises:
        Unavailable: Nothing is there.
    """
    try:
        ftp.cwd(link["name"])
    except error_perm:
        return {**link, "type": "file", "size": _size(ftp, link["name"])}
    return {**link, "type": "directory"}


def _size(ftp: FTP, path: str) -> int | None:
    try:
        ftp.voidcmd("TYPE I")  # sizes in ASCII mode are refused by some servers, and wrong by others
        return ftp.size(path)
    except error_perm as error:
        what = f"{path} is a dangling link"
        raise Unavailable.of(what, str(error), "Mount the volume of its target, or remove it") from error
