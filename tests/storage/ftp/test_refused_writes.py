"""What replies to a write mean: the name, the permission, the server's disk, or only the connection."""

from __future__ import annotations

import ftplib
import socket
from typing import Any, cast

import pytest

from podferry.storage.ftp import refused_writes
from podferry.storage.ftp.refused_writes import (
    NameRefused,
    broken_upload,
    directories_above,
    disk_failure,
    refused_file,
    refused_rename,
)
from podferry.storage.ftp.session import FtpSession

Permanent, Temporary, Reply = ftplib.error_perm, ftplib.error_temp, ftplib.Error
DENIED, NAME = Permanent("550 Permission denied."), Permanent("553 Could not create file.")


class Server:
    """Has these directories, and replies so to new names."""

    def __init__(self, directories: str = "", *, takes: bool = False, says: str = "") -> None:
        self._directories, self._takes, self._says = directories.split(), takes, says
        self.sent: list[str] = []

    def _reply(self, command: str, *, accepted: bool) -> None:
        self.sent.append(command)
        if not accepted:
            raise Permanent("550 no")

    def cwd(self, path: str) -> None:
        self._reply("CWD", accepted=path in self._directories)

    def mkd(self, path: str) -> None:
        self._reply(f"MKD {path.rpartition('/')[0]}", accepted=self._takes)

    def rmd(self, path: str) -> None:
        self._reply(f"RMD {path.rpartition('/')[0]}", accepted=self._takes)

    def rename(self, old: str, new: str) -> None:
        self._reply(f"{old.count('/')} {new.count('/')}", accepted=self._takes)

    def getmultiline(self) -> str:
        if not self._says:
            raise EOFError
        return self._says


def session(server: Server) -> FtpSession:
    return cast("FtpSession", server)


@pytest.mark.parametrize(
    ("directories", "error", "takes", "expected"),
    [
        ("/d", DENIED, True, PermissionError),  # such as STOR alone
        ("/d", NAME, False, PermissionError),
        ("/d", NAME, True, NameRefused),
        ("", DENIED, False, PermissionError),  # MKD was refused, too
        ("", NAME, True, NameRefused),
    ],
)
def test_what_is_refused_where_other_names_are_taken_is_refused_for_its_name(
    monkeypatch: pytest.MonkeyPatch, directories: str, error: ftplib.error_perm, takes: bool, expected: type
) -> None:
    monkeypatch.setattr(refused_writes, "explained", lambda *_: FileNotFoundError())
    found = refused_file(session(Server(directories, takes=takes)), "/d/new", error)
    assert (type(found), str(found)) == (expected, str(error))


def test_a_directory_that_may_not_be_entered_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_writes, "explained", lambda *_: PermissionError())
    server = Server("/d", takes=True)
    assert type(refused_file(session(server), "/d/closed/new", NAME)) is PermissionError
    assert server.sent == ["CWD", "CWD"]


def test_the_directory_that_other_names_are_tried_in_is_left_as_it_was() -> None:
    server = Server("/d /d/e", takes=True)
    refused_file(session(server), "/d/e/new", NAME)
    assert server.sent == ["CWD", "CWD", "MKD /d/e", "RMD /d/e"]


@pytest.mark.parametrize(("takes", "expected"), [(True, NameRefused), (False, PermissionError)])
def test_a_name_is_refused_if_the_file_can_be_renamed_otherwise(takes: bool, expected: type) -> None:
    for path in ("/d/temporary", "/temporary"):
        server = Server(takes=takes)
        assert type(refused_rename(session(server), path, DENIED)) is expected
        assert server.sent[0] == f"{path.count('/')} {path.count('/')}"


def test_other_replies_are_raised_as_they_are() -> None:
    error, server = Permanent("552 exceeded storage allocation"), Server()
    assert refused_file(session(server), "/d/a", error) is error
    assert refused_rename(session(server), "/d/a", error) is error
    assert server.sent == []


def test_the_root_is_not_among_the_directories_above() -> None:
    assert list(directories_above("/a/b/c")) == ["/a", "/a/b"]
    assert list(directories_above("/c")) == []


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("451 Failure writing to local file.", Temporary),
        ("452 Insufficient storage space", Temporary),
        ("552 exceeded storage allocation", Permanent),
        ("426 No space left on device; transfer aborted.", Temporary),
        ("426 Failure reading network stream.", ConnectionResetError),
        ("226 Transfer complete.", ConnectionResetError),
        ("", ConnectionResetError),
    ],
)
def test_what_the_server_says_of_its_disk_counts_more_than_the_lost_connection(
    says: str, expected: type
) -> None:
    data, other = socket.socketpair()
    with other:
        found: Any = broken_upload(session(Server(says=says)), data, ConnectionResetError())
    assert type(found) is expected
    assert data.fileno() == -1


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("451 Failure writing to local file.", "unwritten"),
        ("426 No space left on device; transfer aborted.", "full"),
        ("451 Disk quota exceeded", "full"),
        ("550 no such file", ""),
        ("426 aborted", ""),
    ],
)
def test_replies_about_the_disk(reply: str, kind: str) -> None:
    assert disk_failure(Reply(reply)) == kind
