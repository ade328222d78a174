"""Where files and directories were seen while they were written."""

from __future__ import annotations

import os
from pathlib import Path

from podferry.sidecar.checkpoint.detect.written_places import WrittenPlaces, look
from podferry.sidecar.runtime.file_identity import FileIdentity


def written(path: Path) -> FileIdentity:
    path.write_bytes(b"1")
    return FileIdentity.of(path.stat())


def update(places: WrittenPlaces, root: Path, *moved: str) -> None:
    found = look(root, {"gone", *(one.relative_to(root).as_posix() for one in root.rglob("*"))})
    places.update(found, moved, {stat.st_ino for stat in found.values()})


def test_what_was_last_written_is_in_place_whatever_changes_its_times_later(tmp_path: Path) -> None:
    places, file = WrittenPlaces(), tmp_path / "a"
    identity = written(file)
    update(places, tmp_path)
    while file.stat().st_ctime_ns == identity.mtime_ns:
        file.chmod(0o640)
    update(places, tmp_path)
    assert places.has_file("a", identity)
    assert not places.has_file("a", identity._replace(mtime_ns=identity.mtime_ns - 1))  # set by a copy
    assert not places.has_file("b", identity)


def test_what_was_seen_only_after_a_change_of_its_times_is_not(tmp_path: Path) -> None:
    places, identity = WrittenPlaces(), written(tmp_path / "a")
    os.utime(tmp_path / "a", ns=(0, 0))
    update(places, tmp_path)
    assert not places.has_file("a", identity)


def test_what_was_moved_in_is_not(tmp_path: Path) -> None:
    places, identity = WrittenPlaces(), written(tmp_path / "a")
    update(places, tmp_path)
    update(places, tmp_path, "a")
    assert not places.has_file("a", identity)


def test_a_directory_is_in_place_at_the_name_at_which_it_was_written(tmp_path: Path) -> None:
    places, folder = WrittenPlaces(), tmp_path / "step-1"
    folder.mkdir()
    written(folder / "a")
    update(places, tmp_path)
    assert places.has("step-1")
    assert not places.has("step-2")
    folder.rename(tmp_path / "step-2")
    update(places, tmp_path, "step-2")
    assert not places.has("step-2")


def test_another_worker_learns_it_and_numbers_that_are_used_again_are_forgotten(tmp_path: Path) -> None:
    places, later = WrittenPlaces(), WrittenPlaces()
    identity = written(tmp_path / "a")
    update(places, tmp_path)
    assert places.dump({identity.inode}) == []
    later.load(places.dump(set()))
    assert later.has_file("a", identity)
    later.update({}, set(), set())
    assert not later.has_file("a", identity)


def test_a_file_keeps_the_name_at_which_it_was_written(tmp_path: Path) -> None:
    places, identity = WrittenPlaces(), written(tmp_path / "last")
    update(places, tmp_path)
    (tmp_path / "last").rename(tmp_path / "prev")
    update(places, tmp_path, "prev")
    assert places.former_names({"prev": identity.inode, "other": 0}) == {"prev": "last"}
    assert places.former_names({"last": identity.inode}) == {}
