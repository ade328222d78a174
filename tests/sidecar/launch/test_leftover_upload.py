"""Leftovers go through the ordinary pipeline."""

import json
from pathlib import Path

import pytest

from podferry.contract.errors import Refused
from podferry.sidecar.launch.launch_options import LaunchOptions
from podferry.sidecar.launch.leftover_upload import upload
from podferry.sidecar.launch.leftovers import find_leftovers
from podferry.sidecar.launch.local_agent import launch
from tests.support.killed_run import killed_run

OPTIONS = LaunchOptions(grace_seconds=30)


def leftover(name):
    return next(one for one in find_leftovers().leftovers if one.id == name)


def document(tmp_path, lineage="t"):
    return json.loads((tmp_path / "destination" / lineage / ".podferry/latest.json").read_text())


def newest(tmp_path, lineage="t"):
    return document(tmp_path, lineage)["name"]


def test_what_was_left_becomes_durable_and_is_removed(tmp_path):
    found = leftover(killed_run(tmp_path, wait="durable"))
    durability = upload(found, OPTIONS)
    assert (durability.durable, durability.last.name) == (True, "epoch-2")
    assert newest(tmp_path) == "epoch-2"
    assert not any(Path(path).exists() for path in found.paths)


def test_it_never_becomes_newer_than_what_another_run_has_committed_since(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").touch()
    found = leftover(killed_run(tmp_path, "--dataset", str(tmp_path / "data")))
    agent = launch({"checkpoints": str(tmp_path / "destination"), "lineage": "t"}, ["train"])
    assert agent.client.wait_for_gate().open
    assert any(found.id in note.remedy for note in agent.notes), "the new run names it at its start"
    (agent.run.data / "checkpoints" / "epoch-7.bin").write_bytes(b"seven")
    assert agent.client.wait_durable(30, final=True, exit_code=0).durable
    agent.stop()
    with pytest.raises(Refused, match="another run has committed to t since"):
        upload(found, OPTIONS)
    assert upload(found, OPTIONS, "rescued").durable
    assert (newest(tmp_path), newest(tmp_path, "rescued")) == ("epoch-7", "epoch-1")
    rescued = document(tmp_path, "rescued")
    assert rescued["datasets"][0]["uri"].endswith("/data")
    assert rescued["origin"]["program"]


def test_the_next_run_in_a_directory_that_the_user_named_uploads_what_is_there(tmp_path):
    directory = tmp_path / "checkpoints"
    name = killed_run(tmp_path, "--checkpoint-path", str(directory))
    assert [one.id for one in find_leftovers().leftovers if one.checkpoints == str(directory)] == [name]
    settings = {"checkpoints": str(tmp_path / "destination"), "checkpoint_path": str(directory)}
    agent = launch({**settings, "lineage": "t"}, ["train"])
    assert agent.notes == ()
    assert agent.client.wait_for_gate().open
    assert agent.client.wait_durable(30, final=True, exit_code=0).durable
    agent.stop()
    assert newest(tmp_path) == "epoch-1"
    assert not [one for one in find_leftovers().leftovers if one.checkpoints == str(directory)]
