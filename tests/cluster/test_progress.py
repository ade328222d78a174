"""What takes minutes says so, and happens once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cluster import process
from tests.cluster.process import run
from tests.support import server_binaries


def test_a_long_command_reports_that_it_still_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(process, "PROGRESS_SECONDS", 0.01)
    run(["sh", "-c", "sleep 0.2"], progress="building")
    assert "cluster: building: 0 min so far" in capsys.readouterr().err


def test_a_server_is_installed_once_by_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    def build(name: str, folder: Path) -> None:
        built.append(name)
        (folder / name).write_text("")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(server_binaries, "_go", build)
    with ThreadPoolExecutor(4) as pool:
        programs = set(pool.map(server_binaries.installed, ["versitygw"] * 4))
    assert built == ["versitygw"]
    assert all(program.exists() for program in programs)
