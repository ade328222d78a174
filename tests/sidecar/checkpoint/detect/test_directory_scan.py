"""Links within the directory are followed, and whatever is left out has a reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podferry.sidecar.checkpoint.detect.directory_scan import LeftOut, scan_directory
from podferry.sidecar.runtime.file_identity import FileIdentity


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def reasons(found: dict[str, LeftOut]) -> dict[str, tuple[str, bool]]:
    return {name: (one.reason, one.loses) for name, one in found.items()}


def test_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    write(tmp_path, "step-1/w-0.bin", "shared/tokenizer.json")
    (tmp_path / "step-1" / "w.bin").symlink_to("w-0.bin")
    (tmp_path / "step-1" / "tokenizer.json").symlink_to("../shared/tokenizer.json")
    found = scan_directory(tmp_path)
    files = dict(found.present["step-1"].files)
    assert sorted(files) == ["step-1/tokenizer.json", "step-1/w-0.bin", "step-1/w.bin"]
    shared = FileIdentity.of((tmp_path / "shared" / "tokenizer.json").stat())
    assert files["step-1/tokenizer.json"] == shared
    assert found.links["step-1/w.bin"] == "step-1/w-0.bin"
    assert found.left_out == {}


def test_a_link_to_a_directory_is_walked(tmp_path: Path) -> None:
    write(tmp_path, "step-1/base/w.bin", "step-1/base/deep/v.bin")
    (tmp_path / "step-2").mkdir()
    (tmp_path / "step-2" / "base").symlink_to("../step-1/base")
    (tmp_path / "step-1" / "base" / "again").symlink_to("deep")
    found = scan_directory(tmp_path)
    below = ["base/again/v.bin", "base/deep/v.bin", "base/w.bin"]
    for step in ("step-1", "step-2"):
        assert sorted(name for name, _ in found.present[step].files) == [f"{step}/{name}" for name in below]
    assert found.links["step-2/base/again/v.bin"] == "step-1/base/deep/v.bin"


@pytest.mark.parametrize("target", ["..", ".", "../../step-1"])
def test_a_directory_that_contains_a_link_to_itself_is_walked_once(tmp_path: Path, target: str) -> None:
    write(tmp_path, "step-1/in/w.bin")
    (tmp_path / "step-1" / "in" / "loop").symlink_to(target)
    found = scan_directory(tmp_path)
    assert [name for name, _ in found.present["step-1"].files] == ["step-1/in/w.bin"]
    assert list(found.left_out) == ["step-1/in/loop"]


def test_two_directories_that_link_to_each_other_end(tmp_path: Path) -> None:
    write(tmp_path, "a/w.bin", "b/v.bin")
    (tmp_path / "a" / "b").symlink_to("../b")
    (tmp_path / "b" / "a").symlink_to("../a")
    found = scan_directory(tmp_path)
    assert sorted(found.files) == ["a/b/v.bin", "a/w.bin", "b/a/w.bin", "b/v.bin"]
    assert sorted(found.left_out) == ["a/b/a", "b/a/b"]


def test_links_that_leave_the_directory_are_refused_by_name(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, "step-1/w.bin")
    write(tmp_path, "elsewhere/secret")
    (root / "step-1" / "secret").symlink_to("../../elsewhere/secret")
    (root / "step-2").symlink_to(tmp_path / "elsewhere")
    found = scan_directory(root)
    assert list(found.files) == ["step-1/w.bin"]
    outside = ("a link that leaves the directory", True)
    assert reasons(found.left_out) == {"step-1/secret": outside, "step-2": outside}


def test_a_link_at_the_top_is_a_pointer_unless_what_it_leads_to_is_hidden(tmp_path: Path) -> None:
    write(tmp_path, "step-1.ckpt", ".blobs/abc")
    (tmp_path / "last.ckpt").symlink_to("step-1.ckpt")
    (tmp_path / "best.ckpt").symlink_to(".blobs/abc")
    found = scan_directory(tmp_path)
    assert sorted(found.present) == ["best", "step-1"]
    left_out = reasons(found.left_out)
    assert left_out["last.ckpt"] == ("a link to step-1.ckpt, which is uploaded itself", False)


def test_every_other_name_has_its_reason_and_podferrys_own_have_none(tmp_path: Path) -> None:
    write(tmp_path, "last.pt.tmp", "tmpab12_x9z/w", ".last.pt.Xy12Zq", ".gitignore", "zero_to_fp32.py")
    write(tmp_path, ".podferry-leftovers/1/w", "step-1/w")
    (tmp_path / "empty.tmp").touch()
    (tmp_path / "gone").symlink_to("nothing")
    (tmp_path / "latest").write_text("step-9")
    os.mkfifo(tmp_path / "pipe")
    unfinished = "named like an unfinished file"
    assert reasons(scan_directory(tmp_path).left_out) == {
        "last.pt.tmp": (unfinished, True),
        "tmpab12_x9z": (unfinished, True),
        ".last.pt.Xy12Zq": (unfinished, True),
        "empty.tmp": (unfinished, False),
        ".gitignore": ("hidden", False),
        "zero_to_fp32.py": ("a script of the framework", False),
        "gone": ("a link to nothing", False),
        "latest": ("a pointer to no checkpoint", False),
        "pipe": ("a socket, a pipe or a device", False),
    }
