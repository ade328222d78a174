"""Which versions of checkpoints the trainer has said to be whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from podferry.contract.commit import step_of
from podferry.contract.errors import Problem
from podferry.contract.suggest import did_you_mean
from podferry.sidecar.checkpoint.detect.candidate import Candidate, candidate_name
from podferry.sidecar.checkpoint.detect.pointer_tracker import data
from podferry.sidecar.runtime.file_identity import Files


def resolve(text: str, present: Mapping[str, Candidate]) -> Candidate | None:
    """The checkpoint of that name, or of that file's or directory's, else the newest of that step."""
    found = present.get(text) or present.get(candidate_name(text.rstrip("/")))
    if found is None and text.isdecimal():
        of_step = [candidate for name, candidate in present.items() if step_of(name) == int(text)]
        found = max(of_step, key=lambda candidate: candidate.changed_ns, default=None)
    return found


def not_found(text: str, names: Collection[str]) -> Problem:
    """That nothing is called so, with what there is."""
    measured = f"there are {', '.join(sorted(names))}" if names else "there is none"
    remedy = "Mark it after it is written, by its name below the checkpoint directory or by its step"
    return Problem(f"no checkpoint is called {text!r}", measured, did_you_mean(text, names, remedy))


class CompletionMarks:
    """The marks, by checkpoint.

    Attributes:
        files: The marked version of each: its files as they lay there, pointers left out. To be saved and
            loaded as it is.
    """

    def __init__(self) -> None:
        self.files: dict[str, Files] = {}

    def mark(self, candidate: Candidate) -> None:
        """Take a checkpoint for whole as it lies there."""
        self.files[candidate.name] = tuple(data(candidate).items())

    def holds(self, candidate: Candidate) -> bool:
        """Whether this very version was marked: another file, or one that changed, needs another mark."""
        return dict(self.files.get(candidate.name, ())) == data(candidate)

    def keep(self, names: Collection[str]) -> None:
        """Forget what lies there no more."""
        for name in self.files.keys() - set(names):
            del self.files[name]
