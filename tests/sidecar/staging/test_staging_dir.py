import os
import signal
import subprocess
import sys

import pytest

from podferry.contract.errors import Corrupt, Refused
from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.staging.file_ops import PARTIAL_DIR
from podferry.sidecar.staging.staging_dir import StagingDir
from tests.support.patience import PATIENCE

FILES = {"a/b.bin": b"12345", "c": b"", "d/e/f": b"xyz"}


def manifest(files, tag=""):
    return freeze("s3://b/d", [Entry(name, len(data), tag) for name, data in files.items()])


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "stage"
    folder.mkdir()
    return folder


@pytest.fixture
def open_stage(root, tmp_path):
    """Opens the stage of one directory repeatedly, like a restarting worker."""
    opened = []

    def opening():
        if opened:
            opened[-1].close()
        opened.append(StagingDir(root, tmp_path / "ownership"))
        return opened[-1]

    yield opening
    opened[-1].close()


def fill(stage, files):
    for number, (name, data) in enumerate(files.items()):
        path = stage.partial_dir / f"test-{number}"
        path.write_bytes(data)
        stage.publish(path, Entry(name, len(data)))


def held(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_an_empty_directory_is_claimed_and_keeps_nothing(open_stage):
    assert open_stage().claim(manifest(FILES)) == frozenset()


def test_published_files_are_kept_by_the_next_start(open_stage, root):
    stage = open_stage()
    stage.claim(manifest(FILES))
    fill(stage, FILES)
    stage.remove_partials()
    assert held(root) == FILES
    assert open_stage().claim(manifest(FILES)) == set(FILES)
    assert held(root) == FILES


@pytest.mark.parametrize("boot", ["same", "another"])
def test_partial_files_stay_for_the_same_manifest_until_a_reboot(open_stage, root, monkeypatch, boot):
    stage = open_stage()
    stage.claim(manifest(FILES))
    fill(stage, {"a/b.bin": FILES["a/b.bin"]})
    stage.create_partial("large").write_bytes(b"half")
    if boot == "another":
        monkeypatch.setattr("podferry.sidecar.staging.staging_dir.boot_id", lambda: "another")
    assert open_stage().claim(manifest(FILES)) == {"a/b.bin"}
    partial = {PARTIAL_DIR + "/large": b"half"} if boot == "same" else {}
    assert held(root) == {"a/b.bin": FILES["a/b.bin"]} | partial


def test_partial_files_of_another_manifest_are_removed(open_stage, root):
    stage = open_stage()
    stage.claim(manifest(FILES))
    stage.create_partial(7).write_bytes(b"half")
    open_stage().claim(manifest({"c": b"1"}))
    assert held(root) == {}


def test_a_file_of_a_wrong_size_is_not_kept(open_stage, root):
    stage = open_stage()
    stage.claim(manifest(FILES))
    fill(stage, FILES)
    (root / "a/b.bin").write_bytes(b"1234")
    assert open_stage().claim(manifest(FILES)) == {"c", "d/e/f"}


@pytest.mark.parametrize("kind", ["file", "nested", "link", "pipe"])
def test_a_foreign_directory_is_refused_and_left_alone(open_stage, root, tmp_path, kind):
    foreign = root / "sub" / "mine" if kind == "nested" else root / "mine"
    foreign.parent.mkdir(exist_ok=True)
    if kind == "link":
        foreign.symlink_to(tmp_path)
    elif kind == "pipe":
        os.mkfifo(foreign)
    else:
        foreign.write_bytes(b"precious")
    with pytest.raises(Refused, match="mine") as caught:
        open_stage().claim(manifest({"mine": b"12345678"}))
    assert caught.value.problems[0].measured.startswith("1 file: ")
    assert foreign.is_symlink() or foreign.exists()
    assert not (root / PARTIAL_DIR).exists()


def test_our_files_of_another_dataset_are_deleted_with_their_directories(open_stage, root):
    stage = open_stage()
    stage.claim(manifest(FILES))
    fill(stage, FILES)
    stage.remove_partials()
    other = {"a": b"a is a file now", "c": b""}
    stage = open_stage()
    assert stage.claim(manifest(other)) == frozenset()
    assert held(root) == {}
    fill(stage, other)
    stage.remove_partials()
    assert held(root) == other
    assert open_stage().claim(manifest(other)) == set(other)


def test_a_foreign_file_next_to_ours_is_never_deleted(open_stage, root):
    stage = open_stage()
    stage.claim(manifest(FILES))
    fill(stage, FILES)
    stage.remove_partials()
    (root / "a/labels.cache").write_bytes(b"precious")
    assert open_stage().claim(manifest(FILES)) == set(FILES)
    assert (root / "a/labels.cache").read_bytes() == b"precious"
    with pytest.raises(Refused, match=r"a/labels\.cache"):
        open_stage().claim(manifest({"other": b"1"}))
    assert held(root) == {**FILES, "a/labels.cache": b"precious"}


def test_a_foreign_directory_without_files_is_left_alone(open_stage, root):
    (root / "lost+found").mkdir()
    stage = open_stage()
    stage.claim(manifest(FILES))
    fill(stage, FILES)
    assert open_stage().claim(manifest({"x": b"1"})) == frozenset()
    assert sorted(path.name for path in root.iterdir()) == [PARTIAL_DIR, "lost+found"]


def test_an_unreadable_ownership_record_owns_nothing(open_stage, root, tmp_path):
    (tmp_path / "ownership").mkdir()
    (tmp_path / "ownership/claim").write_text("torn")
    assert open_stage().claim(manifest(FILES)) == frozenset()
    (tmp_path / "ownership/claim").write_text("torn")
    (root / "mine").write_bytes(b"precious")
    with pytest.raises(Refused, match="mine"):
        open_stage().claim(manifest(FILES))


HOLDER = """
import sys
from pathlib import Path
from podferry.contract.manifest import Entry, freeze
from podferry.sidecar.staging.staging_dir import StagingDir

stage = StagingDir(Path(sys.argv[1]), Path(sys.argv[2]))
stage.claim(freeze("s3://b/d", [Entry("x", 1)]))
print("claimed", flush=True)
sys.stdin.read()
"""


def test_another_process_locks_the_stage_until_it_ends(open_stage, root, tmp_path):
    command = [sys.executable, "-c", HOLDER, str(root), str(tmp_path / "ownership")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"claimed\n"
        stage = open_stage()
        for _ in range(2):  # a refusal must not count as having the lock
            with pytest.raises(Refused, match="another podferry is using the stage"):
                stage.claim(manifest(FILES))
        other.send_signal(signal.SIGKILL)
        other.wait(timeout=PATIENCE)
        assert stage.claim(manifest(FILES)) == frozenset()


@pytest.mark.parametrize("name", [PARTIAL_DIR, f"{PARTIAL_DIR}/x"])
def test_a_name_that_is_reserved_is_refused(open_stage, root, name):
    with pytest.raises(Refused, match="is podferry's own"):
        open_stage().claim(manifest({name: b"1", "a": b"2"}))
    assert list(root.iterdir()) == []


def test_names_that_differ_by_case_are_two_files(open_stage, root):
    files = {"A": b"upper", "a": b"lower", "dir/X": b"1", "DIR/x": b"2"}
    stage = open_stage()
    stage.claim(manifest(files))
    fill(stage, files)
    stage.remove_partials()
    assert held(root) == files


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a//b", "a/../../x", "./a", "a\x00b", "\udcff"])
def test_hostile_names_do_not_become_a_manifest(name):
    with pytest.raises(Corrupt) as caught:
        manifest({name: b"1"})
    assert caught.value.problems[0].remedy
    str(caught.value).encode()


def test_a_file_and_a_directory_of_one_name_do_not_become_a_manifest():
    with pytest.raises(Corrupt, match="both a file and a directory"):
        manifest({"a": b"1", "a/b": b"2"})


def test_a_name_that_is_listed_twice_does_not_become_a_manifest():
    with pytest.raises(Corrupt, match="listed twice"):
        freeze("s3://b/d", [Entry("a", 1, "x"), Entry("b", 1), Entry("a", 2, "y")])


def test_a_stage_that_cannot_be_written_is_refused_with_a_reason(open_stage, tmp_path):
    """A file is in the way of a directory: root gets that error as well."""
    (tmp_path / "ownership").write_text("")
    with pytest.raises(Refused, match="cannot be used"):
        open_stage().claim(manifest(FILES))


def test_a_link_next_to_ours_is_never_written_through(open_stage, root, tmp_path):
    stage = open_stage()
    stage.claim(manifest(FILES))
    (tmp_path / "outside").mkdir()
    (root / "d").symlink_to(tmp_path / "outside")
    with pytest.raises(Refused, match="1 file: d"):
        open_stage().claim(manifest(FILES))
    assert list((tmp_path / "outside").iterdir()) == []
