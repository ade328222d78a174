"""Directories of FTP servers, as `tests/servers/test_unlistable.py` reads them from a real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ftplib import error_perm, error_temp

import pytest

from podferry.contract.errors import InvalidSpec, Unavailable
from podferry.storage.fsspec.ftp_directory import ftp_file_info, list_ftp_directory

VSFTPD = """\
total 12
drwxr-xr-x    3 0        0            4096 Nov 22 22:47 .
drwxr-xr-x    3 0        0            4096 Nov 22 22:47 ..
-rw-r--r--    1 0        0              12 Nov 22 22:47 .hidden
-rw-r--r--    1 0        0               7 Jan 02  2025 two words -> here
drwxr-xr-x    2 0        0            4096 Nov 22 22:47 sub
lrwxrwxrwx    1 0        0               3 Nov 22 22:47 to -> two words
lrwxrwxrwx    1 0        0               3 Nov 22 22:47 into -> sub
prw-r--r--    1 0        0               0 Nov 22 22:47 pipe"""


def refusal(text: str) -> error_perm:
    return error_perm(text)  # noqa: S321 - nothing is sent


class Ftp:
    """A server with the directories /set and /set/sub, as a client sees it.

    Attributes:
        refused: Directories that may not be entered.
        facts: What MLSD says, or None if the server does not know it.
        text: What LIST says.
        reply: With which LIST ends.
    """

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.facts: dict[str, list[tuple[str, dict[str, str]]]] | None = None
        self.text, self.reply = VSFTPD, "226 Directory send OK."
        self.at = "/"

    def cwd(self, path: str) -> None:
        if path in self.refused or path not in {"/", "/set", "/set/sub", "/set/into"}:
            raise refusal("550 Failed to change directory.")
        self.at = path

    def mlsd(self) -> Iterator[tuple[str, dict[str, str]]]:
        if self.facts is None:
            raise refusal("500 Unknown command.")
        yield from self.facts[self.at]

    def retrlines(self, command: str, callback: Callable[[str], None]) -> str:
        top = "drwxr-xr-x    2 0        0            4096 Nov 22 22:47 set"
        for line in {"/": top, "/set": self.text}.get(self.at, "").splitlines():
            callback(line)
        return self.reply

    def voidcmd(self, command: str) -> None:
        assert command == "TYPE I"

    def size(self, path: str) -> int:
        if path != "/set/to":
            raise refusal("550 Could not get file size.")
        return 7


@pytest.fixture
def ftp() -> Ftp:
    return Ftp()


def test_the_lines_of_list(ftp: Ftp) -> None:
    found = {info["name"]: (info["type"], info["size"]) for info in list_ftp_directory(ftp, "/set")}
    assert found == {
        "/set/.hidden": ("file", "12"),
        "/set/two words -> here": ("file", "7"),
        "/set/sub": ("directory", "4096"),
        "/set/to": ("file", 7),
        "/set/into": ("directory", "3"),
    }


def test_the_facts_of_mlsd(ftp: Ftp) -> None:
    ftp.facts = {
        "/set": [
            (".", {"type": "cdir"}),
            ("a", {"type": "file", "size": "5", "modify": "20261122"}),
            ("sub", {"type": "dir"}),
            ("to", {"type": "OS.unix=slink:/set/a", "size": "1"}),
            ("pipe", {"type": "OS.unix=pipe"}),
        ]
    }
    found = list_ftp_directory(ftp, "/set")
    assert [(info["name"], info["type"], info["size"]) for info in found] == [
        ("/set/a", "file", "5"),
        ("/set/sub", "directory", None),
        ("/set/to", "file", 7),
    ]
    assert ftp_file_info(ftp, "/set/a")["modify"] == "20261122"
    with pytest.raises(FileNotFoundError):
        ftp_file_info(ftp, "/set/b")
    assert ftp_file_info(ftp, "/")["type"] == "directory"


@pytest.mark.parametrize("path", ["/none", "/set/none", "/set/none/below", "/set/.hidden", "/set/.hidden/x"])
def test_what_is_not_listed_above_is_missing(ftp: Ftp, path: str) -> None:
    with pytest.raises(FileNotFoundError, match="550"):
        list_ftp_directory(ftp, path)


@pytest.mark.parametrize("refused", ["/", "/set", "/set/sub"])
def test_what_is_listed_above_and_cannot_be_entered_is_denied(ftp: Ftp, refused: str) -> None:
    ftp.refused.add(refused)
    with pytest.raises(PermissionError, match="550 Failed"):
        list_ftp_directory(ftp, refused)


def test_a_directory_that_vsftpd_cannot_open_is_denied(ftp: Ftp) -> None:
    ftp.reply = "226 Transfer done (but failed to open directory)."
    with pytest.raises(PermissionError, match="failed to open"):
        list_ftp_directory(ftp, "/set")


def test_a_link_that_leads_nowhere_is_named(ftp: Ftp) -> None:
    ftp.text = "lrwxrwxrwx    1 0        0               3 Nov 22 22:47 gone -> nowhere"
    with pytest.raises(Unavailable, match="/set/gone is a dangling link"):
        list_ftp_directory(ftp, "/set")


def test_a_format_that_is_not_known_is_named(ftp: Ftp) -> None:
    ftp.text = "11-22-26  10:47PM       <DIR>          sub"
    with pytest.raises(InvalidSpec, match=r"unknown format.*11-22-26"):
        list_ftp_directory(ftp, "/set")


def test_an_outage_is_none_of_these(ftp: Ftp, monkeypatch: pytest.MonkeyPatch) -> None:
    def closing(path: str) -> None:
        raise error_temp("421 Service not available.")  # noqa: S321 - nothing is sent

    monkeypatch.setattr(ftp, "cwd", closing)
    for call in (list_ftp_directory, ftp_file_info):
        with pytest.raises(error_temp):
            call(ftp, "/set/sub")
