"""`podferry wait`: its exit codes, its message, how little it loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from podferry.contract.errors import Problem, Unavailable
from podferry.contract.http_api import Gate
from podferry.sidecar.control import wait_command
from podferry.sidecar.control.http_client import AgentClient


def answers(monkeypatch: pytest.MonkeyPatch, *gates: Gate) -> None:
    answers = iter(gates)
    monkeypatch.setattr(AgentClient, "gate", lambda _, __: next(answers))


@pytest.fixture
def message(tmp_path: Path) -> Path:
    """The file that Kubernetes creates for a termination message."""
    path = tmp_path / "termination-log"
    path.touch()
    return path


def run(message: Path) -> int:
    return wait_command.main(["--agent", "http://127.0.0.1:1", "--termination-log", str(message)])


def test_open_gate_exits_0_and_prints_the_summary(
    monkeypatch: pytest.MonkeyPatch, message: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, Gate(open=False, summary="prefetching: 1 of 2"), Gate(open=True, summary="2 files"))
    assert run(message) == 0
    assert message.read_text() == ""
    assert capsys.readouterr().err.splitlines() == ["prefetching: 1 of 2", "2 files"]


def test_it_writes_what_the_trainer_resumes_from(
    monkeypatch: pytest.MonkeyPatch, message: Path, tmp_path: Path
) -> None:
    gate = Gate(open=True, environment={"PODFERRY_RESTORED": "/dev/shm/checkpoints/step-7"})
    answers(monkeypatch, gate, gate, Gate(open=False, problems=(Problem("too large"),)))
    monkeypatch.setenv("PODFERRY_RESTORED_FILE", str(tmp_path / "path"))
    assert run(message) == 0
    assert (tmp_path / "path").read_text() == "/dev/shm/checkpoints/step-7\n"
    monkeypatch.setenv("PODFERRY_RESTORED_FILE", str(tmp_path / "missing" / "path"))
    assert run(message) == 1
    assert "missing/path cannot be written: No such file or directory" in message.read_text()
    monkeypatch.setenv("PODFERRY_RESTORED_FILE", str(tmp_path / "other"))
    assert run(message) == 78
    assert not (tmp_path / "other").exists()


def test_what_never_works_has_its_own_code_and_all_problems(
    monkeypatch: pytest.MonkeyPatch, message: Path
) -> None:
    problems = (Problem("too large", "9 GiB", "Use less"), Problem("no bucket b"))
    answers(monkeypatch, Gate(open=False, problems=problems))
    assert run(message) == 78
    assert message.read_text() == "podferry: too large (9 GiB). Use less.\nno bucket b."


def test_what_may_work_later_exits_1(monkeypatch: pytest.MonkeyPatch, message: Path) -> None:
    answers(monkeypatch, Gate(open=False, problems=(Problem("no answer"),), retryable=True))
    assert run(message) == 1


def test_a_long_message_is_truncated_to_what_kubernetes_keeps(
    monkeypatch: pytest.MonkeyPatch, message: Path
) -> None:
    answers(monkeypatch, Gate(open=False, problems=(Problem("x" * 9000),)))
    run(message)
    assert len(message.read_bytes()) == 4096


def test_an_absent_agent_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch, message: Path) -> None:
    def silent(_: AgentClient, __: float) -> Gate:
        raise Unavailable.of("the podferry agent does not answer")

    monkeypatch.setattr(AgentClient, "gate", silent)
    assert run(message) == 1
    assert "does not answer" in message.read_text()


def test_a_missing_agent_is_an_error(monkeypatch: pytest.MonkeyPatch, message: Path) -> None:
    monkeypatch.delenv("PODFERRY_AGENT", raising=False)
    assert wait_command.main(["--termination-log", str(message)]) == 78
    assert "PODFERRY_AGENT" in message.read_text()


def test_invalid_settings_fail_at_once_without_an_agent(message: Path) -> None:
    assert (
        wait_command.main(["--refused", "podferry.io/datset: unknown", "--termination-log", str(message)])
        == 78
    )
    assert message.read_text() == "podferry: podferry.io/datset: unknown"


def test_wait_loads_no_heavy_module() -> None:
    listing = (
        "import sys; from podferry.cli.main import main\n"
        "try: main(['wait', '--help'])\nexcept SystemExit: pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True
    ).stderr
    heavy = {
        "aiohttp",
        "click",
        "rich",
        "obstore",
        "fsspec",
        "structlog",
        "stamina",
        "uvloop",
        "asyncio",
        "yaml",
    }
    assert heavy.isdisjoint(loaded.split())
