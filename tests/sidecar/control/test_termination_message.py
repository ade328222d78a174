from __future__ import annotations

import pytest

from podferry.sidecar.control.termination_message import MAX_MESSAGE_BYTES, leave_message


def test_a_message_replaces_an_earlier_one(tmp_path):
    path = tmp_path / "log"
    path.write_text("an earlier and longer message")
    leave_message("no bucket", path)
    assert path.read_text() == "no bucket"


def test_what_kubernetes_does_not_keep_is_not_written(tmp_path):
    path = tmp_path / "log"
    path.touch()
    leave_message("ä" * MAX_MESSAGE_BYTES, path)
    assert path.stat().st_size == MAX_MESSAGE_BYTES


def test_outside_of_kubernetes_no_file_is_created(tmp_path):
    leave_message("no bucket", tmp_path / "log")
    assert list(tmp_path.iterdir()) == []


def test_a_message_that_cannot_be_written_is_logged(tmp_path, capsys: pytest.CaptureFixture[str]):
    leave_message("no bucket", tmp_path)
    assert f"{tmp_path} cannot be written" in capsys.readouterr().err
