from __future__ import annotations

import os

import pytest

from podferry.sidecar.staging.file_ops import (
    NOT_A_FILE,
    PARTIAL_DIR,
    create_file,
    current_umask,
    list_files,
    remove_empty_parents,
    remove_tree,
    write_all,
)


def test_everything_except_directories_and_partial_files_is_listed(tmp_path):
    for name in ("a/b/c", "d", f"{PARTIAL_DIR}/1", f"a/{PARTIAL_DIR}/kept"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"123")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "d")
    (tmp_path / "directory").symlink_to(tmp_path / "a")
    os.mkfifo(tmp_path / "a" / "pipe")
    assert dict(list_files(str(tmp_path))) == {
        "a/b/c": 3,
        f"a/{PARTIAL_DIR}/kept": 3,
        "d": 3,
        "link": NOT_A_FILE,
        "directory": NOT_A_FILE,
        "a/pipe": NOT_A_FILE,
    }


def test_parents_are_removed_up_to_the_first_that_is_not_empty(tmp_path):
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "kept").touch()
    remove_empty_parents(tmp_path, "a/b/c/file")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["kept"]
    remove_empty_parents(tmp_path, "a/gone/file")
    remove_empty_parents(tmp_path, "top")
    assert tmp_path.exists()


def test_a_new_file_never_writes_through_an_earlier_one(tmp_path):
    (tmp_path / "outside").write_bytes(b"precious")
    for left in ("link", "hard"):
        path = tmp_path / left
        path.symlink_to(tmp_path / "outside") if left == "link" else path.hardlink_to(tmp_path / "outside")
        descriptor = create_file(str(path), 0o640)
        os.write(descriptor, b"new")
        os.close(descriptor)
        assert path.read_bytes() == b"new"
        assert path.stat().st_mode & 0o777 == 0o640 & ~current_umask()
    assert (tmp_path / "outside").read_bytes() == b"precious"


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_reading_the_umask_leaves_it_as_it_is(mask):
    before = os.umask(mask)
    try:
        assert [current_umask(), current_umask()] == [mask, mask]
    finally:
        os.umask(before)


def test_a_short_write_is_continued(tmp_path, monkeypatch):
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, start: pwrite(descriptor, data[:3], start))
    with (tmp_path / "w").open("wb") as file:
        write_all(file.fileno(), memoryview(b"0123456789"), 2)
    assert (tmp_path / "w").read_bytes() == b"\0\0" + b"0123456789"


@pytest.mark.parametrize("file", [None, "a/b/c"])
def test_a_directory_is_removed_with_everything_in_it_but_not_what_links_name(tmp_path, file):
    (tmp_path / "kept").mkdir()
    (tmp_path / "tree/a/b").mkdir(parents=True)
    if file:
        (tmp_path / "tree" / file).touch()
        (tmp_path / "tree/link").symlink_to(tmp_path / "kept")
    for _ in range(2):
        remove_tree(tmp_path / "tree")
        assert [path.name for path in tmp_path.iterdir()] == ["kept"]
