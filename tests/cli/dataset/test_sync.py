from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from podferry.contract.errors import AccessDenied
from podferry.storage.memory.faults import Fault
from podferry.storage.memory.store import CONTENTS, Content


@pytest.fixture
def elsewhere():
    """The destination: an empty store."""
    CONTENTS["synced"] = Content()
    yield CONTENTS["synced"]
    del CONTENTS["synced"]


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "data"
    root.mkdir()
    for name in ("a.bin", "b.bin", "notes.txt"):
        (root / name).write_text(name)
    return root


TARGET = "memory://synced/copy"


def test_only_what_differs_is_moved(podferry, tree, elsewhere):
    said = podferry("dataset", "sync", tree, TARGET)
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith("3 files moved, 19 B in ")
    assert said.err.endswith(" s; 0 equal; 0 removed\n")
    (tree / "a.bin").write_text("other")
    (tree / "b.bin").unlink()
    found = json.loads(podferry("dataset", "sync", tree, TARGET, "--delete", "-o", "json").out)
    assert found.pop("seconds") >= 0
    assert found == {"moved": 1, "bytes": 5, "kept": 1, "removed": 1, "problems": []}
    assert elsewhere.objects["copy/a.bin"] == b"other"
    assert "copy/b.bin" not in elsewhere.objects


def test_several_processes_share_a_sync(podferry, tree, elsewhere):
    counts = [
        json.loads(podferry("dataset", "sync", tree, TARGET, "--shard", shard, "-o", "json").out)["moved"]
        for shard in ("0/2", "1/2", "0/2")
    ]
    assert (sum(counts), counts[2]) == (3, 0)


def test_a_dry_run_prints_the_plan_and_moves_nothing(podferry, tree, elsewhere):
    podferry("dataset", "sync", tree, TARGET, "--include", "*.bin")
    (tree / "a.bin").write_text("other")
    (tree / "b.bin").unlink()
    before = dict(elsewhere.objects)
    said = podferry("dataset", "sync", tree, TARGET, "--delete", "--dry-run")
    assert said.out.splitlines() == [
        "move a.bin (unproven, 5 B)",
        "move notes.txt (new, 9 B)",
        "remove b.bin",
    ]
    assert said.err == "2 to move, 14 B; 0 equal; 1 to remove\n"
    found = json.loads(podferry("dataset", "sync", tree, TARGET, "--delete", "--dry-run", "-o", "json").out)
    assert found["removals"] == ["b.bin"]
    assert found["moves"][0] == {"name": "a.bin", "size": 5, "reason": "unproven"}
    assert elsewhere.objects == before


def test_what_could_not_be_moved_is_named_and_the_exit_code_is_1(podferry, tree, elsewhere):
    (tree / "a.bin").write_text("x")
    elsewhere.objects["copy/a.bin/b"] = b"a file below"
    target = tree.parent / "copy"
    (target / "a.bin").mkdir(parents=True)
    said = podferry("dataset", "sync", tree, target)
    assert said.code == 1
    assert "a.bin" in said.err
    assert "2 files moved" in said.err


def test_errors_are_sentences(podferry, tree, elsewhere):
    said = podferry("dataset", "sync", tree, "https://example.org/x")
    assert (said.code, "a web server takes no files" in said.err) == (1, True)
    said = podferry("dataset", "sync", tree, tree / "copy")
    assert (said.code, "one of them is in the other" in said.err) == (1, True)
    said = podferry("dataset", "sync", f"{tree}x", TARGET, "--delete")
    assert (said.code, "does not exist" in said.err) == (1, True)
    assert podferry("dataset", "sync", tree).code == 2
    elsewhere.faults.append(Fault("write", times=99, error=AccessDenied.of("the store refuses")))
    said = podferry("dataset", "sync", tree, TARGET)
    assert (said.code, said.err) == (1, "podferry: the store refuses.\n")


KILLED = """
import os, pathlib, signal, sys
from podferry.cli.main import main
from podferry.sidecar.sync import record_log
record_log.FLUSH_SECONDS = record_log.FLUSH_SHARE = 0
real, left = pathlib.Path.replace, int(sys.argv[1])
def replace(self, target):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)
pathlib.Path.replace = replace
main(["dataset", "sync", *sys.argv[2:]])
"""


@pytest.mark.parametrize("renames", [0, 1, 2, 5, 11, 30])
def test_a_process_killed_at_any_rename_leaves_whole_files_and_the_next_one_continues(
    podferry, tmp_path, renames
):
    """Records are renamed into place, too."""
    source, target = tmp_path / "data", tmp_path / "copy"
    source.mkdir()
    for number in range(20):
        (source / str(number)).write_bytes(bytes([number]) * 5000)
    words = [sys.executable, "-c", KILLED, str(renames), str(source), str(target)]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    there = {path.name: path.read_bytes() for path in target.iterdir() if path.name.isdecimal()}
    assert all(data == bytes([int(name)]) * 5000 for name, data in there.items())
    found = json.loads(podferry("dataset", "sync", source, target, "-o", "json").out)
    assert found["moved"] + found["kept"] == 20
    assert found["kept"] <= len(there)
    if renames == 30:
        assert found["kept"] > 0
    assert sorted(path.name for path in target.iterdir() if path.name.isdecimal()) == sorted(
        map(str, range(20))
    )
    assert json.loads(podferry("dataset", "sync", source, target, "-o", "json").out)["kept"] == 20
