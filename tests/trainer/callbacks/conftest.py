"""A ferry without an agent, which records what is marked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest

from podferry.contract.errors import Problem
from podferry.contract.http_api import AGENT_VARIABLE, CHECKPOINTS_VARIABLE, Marked
from podferry.sidecar.control.http_client import AgentClient
from podferry.trainer import Ferry, Mode


@dataclass
class Recorder(AgentClient):
    """Marks what it is asked to, unless it refuses.

    Attributes:
        marked: The names so far.
        refuses: Whether every checkpoint is torn.
    """

    marked: list[str] = field(default_factory=list)
    refuses: bool = False

    def mark_done(self, checkpoint: str) -> Marked:
        if self.refuses:
            return Marked(checkpoint, (Problem(f"{checkpoint} is torn"),))
        self.marked.append(checkpoint)
        return Marked(checkpoint)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """The checkpoint directory."""
    (tmp_path / "checkpoints").mkdir()
    return tmp_path / "checkpoints"


@pytest.fixture
def ferry(checkpoints: Path, recorder: Recorder) -> Ferry:
    return Ferry(None, checkpoints, None, None, {}, Mode.PROCESS, recorder)


@pytest.fixture
def agent(checkpoints: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """The agent that the environment names: the recorder."""
    monkeypatch.setenv(AGENT_VARIABLE, "http://127.0.0.1:1")
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(checkpoints))
    monkeypatch.setattr("podferry.trainer.marks.AgentClient", lambda url: recorder)
    return recorder


def module(name: str, **members: object) -> ModuleType:
    """A module that stands in for a library's."""
    made = ModuleType(name)
    vars(made).update(members)
    return made
