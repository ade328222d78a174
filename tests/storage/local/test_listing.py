"""Another program renames, deletes and creates while a directory is listed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from podferry.contract.errors import NotFound, Unavailable
from podferry.storage.local import listing
from podferry.storage.local.listing import files_below


def names(path: Path) -> list[str]:
    return [name for name, _ in files_below(path, frozenset(), None)]


@pytest.fixture
def after_scan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Callable[[], object]], None]:
    """Has a change made when `tmp_path` has been scanned."""
    real = listing.scan

    def arrange(change: Callable[[], object]) -> None:
        def scan(path: Path, claim: Path | None) -> list[os.DirEntry[str]]:
            found = real(path, claim)
            if path == tmp_path:
                change()
            return found

        monkeypatch.setattr(listing, "scan", scan)

    return arrange


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    (tmp_path / "a/deep").mkdir(parents=True)
    (tmp_path / "a/deep/file").write_text("1")
    (tmp_path / "z").write_text("2")


@pytest.mark.parametrize(("old", "new"), [("a", "b"), ("z", "y")])
def test_what_has_another_name_now_is_not_left_out(tmp_path: Path, after_scan, old: str, new: str) -> None:
    after_scan(lambda: (tmp_path / old).rename(tmp_path / new))
    with pytest.raises(Unavailable, match=rf"{old} was renamed .*it is {new} now"):
        names(tmp_path)


def test_a_directory_that_is_renamed_while_it_is_listed_may_have_lost_files(tmp_path: Path) -> None:
    found = files_below(tmp_path, frozenset(), None)
    assert next(found)[0] == "a/deep/file"
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").mkdir()
    with pytest.raises(Unavailable, match="it is b now"):
        list(found)


def test_what_is_deleted_or_replaces_a_listed_file_is_left_out(tmp_path: Path, after_scan) -> None:
    def change() -> None:
        (tmp_path / "a/deep/file").unlink()
        (tmp_path / "a/deep").rmdir()
        (tmp_path / "a").rmdir()
        (tmp_path / ".z.new").replace(tmp_path / "z")

    (tmp_path / ".z.new").write_text("3")
    after_scan(change)
    assert names(tmp_path) == ["z"]


def test_a_file_that_is_created_again_at_that_moment_is_listed(tmp_path: Path, monkeypatch) -> None:
    """It is gone for `stat`, there for `readlink`, and no link: that was no valid name."""

    class Entry:
        """An entry that vanishes, and is there again."""

        name, path = "z", str(tmp_path / "z")

        def stat(self) -> os.stat_result:
            raise FileNotFoundError

        def is_dir(self) -> bool:
            return False

        def is_file(self) -> bool:
            return True

    monkeypatch.setattr(listing, "scan", lambda path, claim: [Entry()])
    assert names(tmp_path) == ["z"]


def test_a_dangling_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(NotFound, match=r"dangling link \(nowhere"):
        names(tmp_path)
