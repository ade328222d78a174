"""What is torn or in the way is renamed, never deleted."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Refused
from podferry.sidecar.checkpoint.restore import leftovers
from podferry.sidecar.checkpoint.restore.leftovers import Leftovers

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "ckpts"
    found.mkdir()
    return found


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"PK\3\4{name}" if name.endswith(".npz") else name)


def names(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def restored(name: str, created: datetime) -> Commit:
    return Commit(1, 1, "run", name, name, 5, created, (), "writer")


def test_names_are_moved_next_to_the_directory_and_nothing_is_replaced(root: Path) -> None:
    found = Leftovers(root, lambda: NOW)
    for _ in range(2):
        write(root, "step-1/w.bin")
        found.move_away("step-1", "it has 6 bytes")
    moved = root.with_name("ckpts.podferry-leftovers") / "20260304T050607Z"
    assert names(moved) == ["step-1/w.bin", "step-1~1/w.bin"]
    assert found.moved == [str(moved / "step-1"), str(moved / "step-1~1")]
    assert names(root) == []


def test_where_a_sibling_is_impossible_they_are_moved_to_a_hidden_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def within_a_mount(path: Path, target: Path) -> Path:
        if not target.is_relative_to(root):
            raise OSError(18, "Invalid cross-device link")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", within_a_mount)
    write(root, "last.pt")
    found = Leftovers(root, lambda: NOW)
    found.move_away("last.pt", "torn")
    assert names(root) == [".podferry-leftovers/20260304T050607Z/last.pt"]
    found.move_torn(None, gang=False)
    assert len(found.moved) == 1, "they are no checkpoint themselves"


def test_what_cannot_be_moved_is_refused_with_both_reasons(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(path: Path, target: Path) -> Path:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "rename", forbidden)
    write(root, "last.pt")
    with pytest.raises(Refused, match=r"not permitted.*not permitted"):
        Leftovers(root).move_away("last.pt", "torn")


def test_what_is_proven_incomplete_is_torn_and_nothing_else_is(root: Path) -> None:
    write(root, "torn.npz", "step-9/w.distcp", "step-8/x.bin.tmp", "raw.bin", "step-7/raw.bin", "notes.txt")
    found = Leftovers(root, lambda: NOW)
    found.move_torn(None, gang=False)
    assert sorted(Path(path).name for path in found.moved) == ["step-8", "step-9", "torn.npz"]
    assert names(root) == ["notes.txt", "raw.bin", "step-7/raw.bin"]


@pytest.mark.parametrize(
    ("name", "age", "moved"), [("step-4.npz", 60, 0), ("step-4.npz", -60, 1), ("step-6.npz", 60, 1)]
)
def test_what_is_older_than_the_restored_one_stays(root: Path, name: str, age: int, moved: int) -> None:
    write(root, name)
    changed = (NOW - timedelta(seconds=age)).timestamp()
    os.utime(root / name, (changed, changed))
    found = Leftovers(root, lambda: NOW)
    found.move_torn(restored("step-5", NOW), gang=False)
    assert len(found.moved) == moved


def test_the_list_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "MAX_SHOWN", 2)
    write(root, "1.npz", "2.npz", "3.npz")
    found = Leftovers(root, lambda: NOW)
    found.move_torn(None, gang=False)
    assert (len(found.moved), names(root)) == (2, [])
