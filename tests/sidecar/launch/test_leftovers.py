"""Which directories are leftovers, and which are never touched."""

import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from podferry.contract.errors import Refused
from podferry.contract.http_api import Gate
from podferry.contract.spec import CheckpointSpec, FerrySpec
from podferry.contract.spec_json import encode_spec
from podferry.sidecar.config.run_directory import RunDirectory
from podferry.sidecar.launch import leftovers as module
from podferry.sidecar.launch.leftovers import (
    claim,
    find_leftovers,
    left_by,
    remove,
    remove_empty_records,
    supersede,
    use_problem,
)
from podferry.sidecar.launch.local_directories import create_run
from podferry.sidecar.launch.mount_view import MountView, view_of
from podferry.sidecar.launch.run_record import RunRecord, write_record
from podferry.sidecar.runtime.file_lock import acquire, release
from podferry.sidecar.state.journal import Journal

SPEC = encode_spec(FerrySpec(checkpoints=CheckpointSpec("file:///d", "/c"), lineage="t")).decode()


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """Only directories of this test are found."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "memory").mkdir()
    monkeypatch.setattr(module, "run_roots", lambda: [tmp_path / "disk"])
    monkeypatch.setattr(module, "memory_root", lambda: tmp_path / "memory")
    return tmp_path


@pytest.fixture
def left(places):
    """Make a run's directories; `changes` are for its record."""

    def make(name, **changes):
        path, data = (places / root / f"podferry-{os.getuid()}-{name}" for root in ("disk", "memory"))
        for one in (path, data):
            one.mkdir()
        (data / "file").write_bytes(b"1" * 100)
        fields = {"command": ("t",), "spec": "{}", "started_at": 1.0, "data": str(data)}
        write_record(path / "record.json", RunRecord(**{**fields, "temporary": (str(data),), **changes}))
        return path

    return make


def open_gate(path):
    """The journal of a run whose trainer had started."""
    journal = Journal(RunDirectory(path).control)
    journal.agent.gate = Gate(open=True)
    journal.save()


def names():
    return [one.id for one in find_leftovers().leftovers]


def test_nothing_of_a_living_process_is_a_leftover(left):
    path = left("a")
    for lock in (path, path / "trainer", path / "agent"):
        held = acquire(lock)
        assert (names(), [run.id for run in find_leftovers().in_use]) == ([], ["a"])
        release(held)
    assert names() == ["a"]


def test_what_a_living_run_uses_as_well_is_left_out(left):
    left("a", checkpoints="/c")
    held = acquire(left("b", checkpoints="/c"))
    assert names() == []
    release(held)


def test_an_agent_may_have_begun_since(left):
    path = left("a")
    (found,) = find_leftovers().leftovers
    held = acquire(path / "agent")
    with pytest.raises(Refused, match="a is in use"):
        claim(found)
    release(held)
    remove(found)
    assert not path.exists()
    assert names() == []


def test_a_directory_of_an_earlier_version_is_listed_unless_it_is_new(places):
    folder = places / "memory" / f"podferry-{os.getuid()}-old" / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "epoch-1.bin").write_bytes(b"1")
    assert names() == []
    os.utime(folder.parent, (time.time() - 100, time.time() - 100))
    (found,) = find_leftovers().leftovers
    assert (found.id, found.not_durable, found.destination) == ("old", ("epoch-1",), None)
    assert "copy what you need" in found.problem


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give a directory away")
def test_directories_of_other_users_are_counted_and_not_opened(left, places):
    for name in ("podferry-12345-x", f"podferry-{os.getuid()}-y"):
        (places / "memory" / name).mkdir()
        os.chown(places / "memory" / name, 12345, 12345)
    assert names() == []
    assert find_leftovers().others == 2


def test_a_record_without_directories_is_not_shown(left):
    """Of a container with another /dev/shm, or before a restart of the machine."""
    left("a", data="/gone", temporary=("/gone",))
    assert names() == []


def test_what_cannot_be_removed_is_named(left, tmp_path, monkeypatch):
    """Such as files that a container wrote as another user."""
    left("a")
    (found,) = find_leftovers().leftovers
    monkeypatch.setattr(module.shutil, "rmtree", lambda path, ignore_errors: None)
    with pytest.raises(
        Refused, match=r"a cannot be removed completely \(left: .*/memory/podferry.*-a, .*-a\)"
    ):
        remove(found)


@pytest.mark.parametrize("removed", ["directory", "contents"])
def test_a_record_is_removed_with_the_directories_that_it_was_for(left, tmp_path, removed):
    named, gone = tmp_path / "named", str(tmp_path / "gone")
    named.mkdir()
    (named / "epoch-1.bin").write_bytes(b"1")
    view = view_of([str(named), gone])
    path = left("a", data=gone, temporary=(gone,), checkpoints=str(named), spec=SPEC, view=view)
    open_gate(path)
    remove_empty_records()
    assert names() == ["a"]
    (named / "epoch-1.bin").unlink()
    if removed == "directory":
        named.rmdir()
    held = acquire(path / "agent")
    remove_empty_records()
    assert path.exists()
    release(held)
    remove_empty_records()
    assert not path.exists()


@pytest.mark.parametrize("view", [MountView(), MountView("another boot", {})])
def test_what_is_only_elsewhere_keeps_its_record(left, view):
    path = left("a", data="/gone", temporary=("/gone",), checkpoints="/elsewhere", spec=SPEC, view=view)
    open_gate(path)
    remove_empty_records()
    assert path.exists()


def test_who_uses_a_run_is_named(left):
    path = left("a")
    held = acquire(path)
    problem = use_problem(RunDirectory(path))
    assert problem.measured == f"its command is process {os.getpid()}"
    assert problem.remedy == f"Stop it first: kill {os.getpid()}"
    release(held)
    held = acquire(path / "agent")
    problem = use_problem(RunDirectory(path))
    assert (problem.measured, problem.remedy) == (
        f"its agent is process {os.getpid()}",
        "Wait until its agent has ended",
    )
    release(held)


def test_of_runs_that_start_at_once_each_may_remove_an_empty_record(left, monkeypatch):
    """The other one has removed it after this one had found it."""
    path = left("a", data="/gone", temporary=("/gone",), spec=SPEC, view=view_of([]))
    found = module.leftover_of_run(path, module.read_record(path / "record.json"))

    def removed_meanwhile(*arguments):
        shutil.rmtree(path, ignore_errors=True)
        return found

    monkeypatch.setattr(module, "leftover_of_run", removed_meanwhile)
    remove_empty_records()
    assert not path.exists()
    with pytest.raises(Refused, match="a is gone"):
        claim(found)


def test_a_new_run_takes_over_the_checkpoint_directory_that_the_user_named(left, tmp_path):
    path, other = left("a", checkpoints="/c"), left("b", checkpoints="/d")
    supersede(RunRecord(("t",), "{}", 2.0, "/new", checkpoints="/c"))
    assert (path.exists(), other.exists()) == (False, True)


def test_a_run_that_was_just_made_is_no_leftover(monkeypatch):
    run = create_run()
    try:
        monkeypatch.setattr(module, "run_roots", lambda: [run.directory.path.parent])
        assert run.directory.id not in names()
    finally:
        run.remove()
    assert not Path(run.data).exists()


@pytest.mark.parametrize("living", [(), (7, 8)])
def test_nothing_is_removed_under_a_process_that_the_command_left_behind(left, places, monkeypatch, living):
    monkeypatch.setattr(module, "trainer_of", lambda _: SimpleNamespace(look=lambda: living))
    path = left("a", spec=SPEC, checkpoints=str(places / "memory" / f"podferry-{os.getuid()}-a" / "none"))
    open_gate(path)
    problem = left_by(RunDirectory(path))
    assert path.exists() == bool(living)
    assert (problem.measured if problem else "") == (
        "process 7, 8 of the command still runs" if living else ""
    )
