"""Shows where commits come from: their program and their datasets."""

from __future__ import annotations

from collections.abc import Sequence

from podferry.contract.destination.commit import Commit
from podferry.contract.destination.provenance import DatasetVersion

COLUMNS = ("program", "dataset")
"""Added to a table if one of its commits records them."""


def provenance_columns(commits: Sequence[Commit | None]) -> tuple[str, ...]:
    """The columns of a table of these commits; None is one that is not readable."""
    known = [commit for commit in commits if commit is not None]
    return COLUMNS if any(commit.origin or commit.datasets for commit in known) else ()


def provenance_cells(commit: Commit | None) -> tuple[str, ...]:
    """The cells of a commit, one for each of `COLUMNS`."""
    origin = commit.origin if commit is not None else None
    datasets = (commit.datasets or ()) if commit is not None else ()
    program = str(origin or "-")
    if origin is not None and origin.program.startswith("/"):
        program = origin.program
    return program, ", ".join(map(str, datasets)) or "-"


def provenance_lines(commit: Commit) -> list[tuple[str, str]]:
    """Names and values for `show`; none for what the commit does not record."""
    origin = [("program", str(commit.origin))] if commit.origin is not None else []
    known = [("image", commit.code.image), ("code", commit.code.digest)] if commit.code else []
    code = [(name, text) for name, text in known if text]
    return [*origin, *code, *(("dataset", _with_digest(dataset)) for dataset in commit.datasets or ())]


def _with_digest(dataset: DatasetVersion) -> str:
    return f"{dataset}, sha256 {dataset.digest}" if dataset.digest else str(dataset)
