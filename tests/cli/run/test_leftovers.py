"""`podferry leftovers` over what a killed run has left."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from podferry.sidecar.config.run_directory import RunDirectory
from podferry.sidecar.launch.run_record import RunRecord, write_record
from podferry.sidecar.runtime.file_lock import acquire, release
from tests.support.killed_run import killed_run
from tests.support.terminal import Terminal


@pytest.fixture
def listed(podferry):
    """One leftover as the JSON document has it, None if it is not there."""

    def find(name):
        return next(
            (one for one in json.loads(podferry("leftovers", "ls", "-o", "json").out) if one["id"] == name),
            None,
        )

    return find


def test_list_and_upload(podferry, listed, tmp_path):
    name = killed_run(tmp_path)
    assert listed(name)["not_durable"] == ["epoch-1"]
    (row,) = [line for line in podferry("leftovers", "ls").out.splitlines() if line.startswith(name)]
    assert "epoch-1" in row
    assert f"file://{tmp_path}/destination" in row
    said = podferry("leftovers", "upload", name)
    assert said.code == 0, said.err
    assert "durable at file://" in said.err
    assert listed(name) is None
    assert (tmp_path / "destination/t/.podferry/latest.json").exists()


def test_removal_asks_first(podferry, listed, tmp_path):
    name = killed_run(tmp_path)
    refused = podferry("leftovers", "rm", name)
    assert (refused.code, "add --yes" in refused.err) == (2, True)
    command = [sys.executable, "-m", "podferry.cli.main", "leftovers", "rm", name]
    for answer, code in (("n\n", 130), ("y\n", 0)):
        assert listed(name) is not None
        with Terminal(command) as terminal:
            terminal.read_until("Remove 1 leftover?")
            assert "not durable: epoch-1" in terminal.text
            terminal.press(answer)
            assert terminal.wait() == code
    assert listed(name) is None


def test_a_name_that_is_not_there_is_an_error(podferry):
    said = podferry("leftovers", "rm", "no-such-run", "--yes")
    assert (said.code, "there is no leftover 'no-such-run'" in said.err) == (1, True)


@pytest.mark.parametrize("verb", ["upload", "rm"])
def test_nothing_is_chosen_by_default(podferry, verb):
    assert podferry("leftovers", verb).code == 2


@pytest.mark.parametrize("verb", ["upload", "rm"])
def test_all_and_a_name_contradict_each_other(podferry, verb):
    said = podferry("leftovers", verb, "--all", "nope")
    assert (said.code, "--all and nope contradict each other" in said.err) == (2, True)


def test_a_run_that_lives_is_named_with_its_process(podferry, tmp_path):
    record = RunDirectory(Path(tempfile.mkdtemp(prefix=f"podferry-{os.getuid()}-")))
    write_record(record.record, RunRecord(("t",), "{}", 1.0, "/none"))
    lock = acquire(record.path)
    try:
        said = podferry("leftovers", "rm", record.id)
        assert said.code == 1
        assert f"{record.id} is in use: that run is not over" in said.err
        assert f"Stop it first: kill {os.getpid()}" in said.err
        assert record.id in podferry("leftovers", "ls").err
    finally:
        release(lock)
        shutil.rmtree(record.path)


def test_what_is_refused_for_good_is_hopeless_in_json_as_well(podferry, tmp_path):
    name = killed_run(tmp_path)
    said = podferry("leftovers", "upload", name, "--lineage", "../x", "-o", "json")
    assert "not a plain path segment" in said.err
    (result,) = json.loads(said.out)
    assert (said.code, result["hopeless"], result["pending"]) == (74, True, ["epoch-1"])
    assert podferry("leftovers", "rm", name, "--yes").code == 0
