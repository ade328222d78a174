"""The directory of a local run: its journal, and locks that show who lives.

It is not in the volume of the data and the checkpoints: a trainer that fills that one must not take the agent
down.

    <run>              locked by the command, `podferry run` or a Python program with `ferry`
    <run>/trainer      locked by what the command started, and by its children
    <run>/agent        locked by the agent's worker
    <run>/ended        exists once the command has asked its agent to end
    <run>/record.json  what the run is: `podferry.sidecar.launch.run_record`
    <run>/control      the agent's own, with the journal
    <run>/control/restored  what training resumes from, for the trainer
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from podferry.sidecar.runtime.file_lock import is_locked


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The directory of one run.

    Attributes:
        path: The directory, which is also the command's lock.
    """

    path: Path

    @property
    def id(self) -> str:
        """Names the run: the random part of the directory's name."""
        return self.path.name.rpartition("-")[2]

    @property
    def control(self) -> Path:
        """The agent's own directory."""
        return self.path / "control"

    @property
    def restored_file(self) -> Path:
        """The trainer's `PODFERRY_RESTORED_FILE`."""
        return self.control / "restored"

    @property
    def record(self) -> Path:
        """The file that says what the run is."""
        return self.path / "record.json"

    @property
    def trainer_lock(self) -> Path:
        """Held by the trainer and its children."""
        return self.path / "trainer"

    @property
    def agent_lock(self) -> Path:
        """Held by the agent's worker."""
        return self.path / "agent"

    @property
    def _ended(self) -> Path:
        return self.path / "ended"

    def mark_ended(self) -> None:
        """The command's trainer has ended, and the agent is to end: also if a child of it lives on."""
        with suppress(OSError):  # the agent has removed the directory
            self._ended.touch()

    def reopen(self) -> None:
        """Another agent is to work in the directory of a run that has ended."""
        self._ended.unlink(missing_ok=True)

    def is_over(self) -> bool:
        """Whether nothing writes any more: the command has said so, or it and its trainer have ended."""
        ended = not self.path.exists() or self._ended.exists()
        return ended or not (self.command_lives() or is_locked(self.trainer_lock))

    def command_lives(self) -> bool:
        """Whether the command lives, which restarts an agent."""
        return is_locked(self.path)

    def in_use(self) -> bool:
        """Whether a process of the run lives."""
        return any(map(is_locked, (self.path, self.trainer_lock, self.agent_lock)))
