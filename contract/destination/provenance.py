"""Where a commit comes from: the datasets that it was trained on, and the local run that wrote it.

They are fields of the commit. Commits of podferry 0.1 lack them, and 0.1 ignores them: the format stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import msgspec

from podferry.contract.dataset_reference import parse_reference
from podferry.contract.kfp_run_folders import without_runs
from podferry.contract.program import SHELL, Program

UNNAMED = frozenset(f"{kind}{word}" for kind in ("", "python", "pypy", SHELL) for word in ("", " -", " -c"))
"""Programs without a path, a module or a name."""
SHOWN_DIGITS = 12
"""Of a digest in a message: enough to compare two."""


class DatasetVersion(msgspec.Struct, frozen=True, omit_defaults=True):
    """One dataset of a run.

    Attributes:
        uri: Its location, without digest and options.
        digest: SHA-256 of its selected files' names, sizes and tags, before any shard; None if unknown.
        name: The NAME of `dataset.NAME`; empty for the unnamed dataset.
    """

    uri: str
    digest: str | None = None
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name}={self.uri}" if self.name else self.uri


class RunOrigin(msgspec.Struct, frozen=True):
    """Which program wrote a commit, and where it ran. For people, and to find the lineages of one program.

    Attributes:
        program: `Program.description`: a path, `python -m MODULE`, a name, or `python -c`.
        directory: The working directory.
        host: The name of the machine or container.
        arguments: A hash of launcher and arguments. Never the text: it may contain secrets.
    """

    program: str
    directory: str
    host: str
    arguments: str

    @property
    def label(self) -> str:
        """The program's short name; empty for code and for an interpreter alone."""
        interpreter, _, module = self.program.partition(" -m ")
        name = f"-m {module}" if module else interpreter
        return Program((), name).label if self.program not in UNNAMED else ""

    @property
    def relative_program(self) -> str:
        """The program, relative to the directory if it is in it: what stays if both are moved."""
        return self.program.removeprefix(f"{self.directory}/")

    def __str__(self) -> str:
        return f"{self.program} in {self.directory} on {self.host}"


class DatasetChange(msgspec.Struct, frozen=True):
    """How one dataset differs from that of an earlier commit; None for one that is not there."""

    before: DatasetVersion | None
    now: DatasetVersion | None

    @property
    def replaced(self) -> bool:
        """Whether both exist, at different locations; those of two runs of a KFP step count as one."""
        if self.before is None or self.now is None:
            return False
        return without_runs(self.before.uri) != without_runs(self.now.uri)

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.now} was added"
        if self.now is None:
            return f"{self.before} is missing"
        if self.replaced:
            return f"{self.before} before, {self.now} now"
        return f"{self.now}: sha256 {_digits(self.before)} before, {_digits(self.now)} now"


def dataset_location(reference: str) -> str:
    """The location of a dataset, without digest and options: what identifies it while its content changes."""
    return str(msgspec.structs.replace(parse_reference(reference).uri, options=()))


def dataset_changes(
    before: Sequence[DatasetVersion] | None, now: Sequence[DatasetVersion]
) -> list[DatasetChange]:
    """What differs between the datasets of a commit and those of a run.

    Those of one name are compared, then the others, in which equal ones match under any name. Equal content
    at another location is no change. If the commit does not record its datasets (`before` is None), nothing
    is known to differ.
    """
    earlier, later = ({one.name: one for one in side} for side in (before or (), now))
    common = [(earlier.pop(name), later.pop(name)) for name in [*earlier] if name in later]
    for name, one in list(earlier.items()):
        renamed = next((other.name for other in later.values() if _is_same(one, other)), None)
        if renamed is not None:
            del earlier[name], later[renamed]
    pairs = [*common, *zip_longest(earlier.values(), later.values())] if before is not None else []
    changes = [DatasetChange(*pair) for pair in pairs]
    return [change for change in changes if not _is_same(change.before, change.now)]


def _is_same(one: DatasetVersion | None, other: DatasetVersion | None) -> bool:
    if one is None or other is None:
        return one is other
    if one.digest is not None and other.digest is not None:
        return one.digest == other.digest
    return one.uri == other.uri


def _digits(dataset: DatasetVersion) -> str:
    return dataset.digest[:SHOWN_DIGITS] if dataset.digest else "unknown"
