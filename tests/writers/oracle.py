"""What undisturbed runs of a program leave: the only complete checkpoints there are.

Nothing here asks the product which files belong together. A *save* is what a program announces; its files are
those written since the announcement before, with all others of their directory; a set of files is complete if
it has every file of one save with the bytes of that save.

The undisturbed runs are compared with each other: bytes that differ (times, random names) count for nothing.
Names that are random only have to be there, and files whose sizes differ are compared by their size alone,
within a tenth.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from podferry.sidecar.checkpoint.detect.pointer_files import is_pointer
from podferry.sidecar.checkpoint.detect.unfinished_names import IGNORED_NAMES, is_unfinished

RANDOM = re.compile(r"[0-9a-f]{32}")
NEAR_BYTES = 16
"""Bytes so near to ones that differ between runs may differ too: an address in decimal has 15."""
SMALL_BYTES = 1024
"""Below this size, random numbers may change the size of a file that holds them."""

MEASURED = ("_CHECKPOINT_METADATA",)
"""Orbax' times and metrics, which it writes at the end if they are missing: they only have to be there."""

Version = tuple[int, int]
Tree = Mapping[str, bytes]


class Written(NamedTuple):
    """A file at a moment: what shows that it was written since, and its bytes."""

    version: Version
    data: bytes


def read_tree(root: Path) -> dict[str, Written]:
    """All regular files below a directory."""
    found = {}
    for folder, _, names in os.walk(root):
        for path in (Path(folder) / name for name in names):
            if path.is_file() and not path.is_symlink():
                stat = path.stat()
                name = path.relative_to(root).as_posix()
                found[name] = Written((stat.st_ino, stat.st_mtime_ns), path.read_bytes())
    return found


@dataclass
class Recorder:
    """Collects the saves of one undisturbed run: name, all files below `root`, and those written."""

    root: Path
    saves: list[tuple[str, dict[str, bytes], frozenset[str]]] = field(default_factory=list)
    before: dict[str, Written] = field(default_factory=dict)

    def saved(self, name: str) -> None:
        """The program announces a save."""
        tree = read_tree(self.root)
        written = frozenset(name for name, file in tree.items() if self._is_new(name, file))
        self.saves.append((name, {name: file.data for name, file in tree.items()}, written))
        self.before = tree

    def _is_new(self, name: str, file: Written) -> bool:
        """Its bytes are compared, too: a write through a mapping may leave no trace."""
        return self.before.get(name) != file


@dataclass(frozen=True)
class Unit:
    """Files that one save writes, and that belong together: a directory, or files at the top.

    Attributes:
        save: The number of the announcement.
        name: What was announced.
        files: The required files by form, each with its bytes in every undisturbed run.
        form: The names of all of them without their digits.
        count: How many saves have had a unit of this form, with this one.
    """

    save: int
    name: str
    files: Mapping[str, tuple[bytes, ...]]
    form: str
    count: int

    def has(self, found: Tree) -> bool:
        """Whether the files with these bytes are among these, by form."""
        return all(name in found and _same(found[name], data) for name, data in self.files.items())


class Oracle:
    """Says what is complete, from the recorded saves of several undisturbed runs of one program.

    Raises:
        ValueError: The runs do not agree.
    """

    def __init__(self, runs: Sequence[Recorder]) -> None:
        self.units: list[Unit] = []
        self._all: list[dict[str, tuple[bytes, ...]]] = []
        self._known: set[str] = set()
        counts = Counter[str]()
        for number, saves in enumerate(zip(*(run.saves for run in runs), strict=True)):
            every = _aligned([by_form(files) for _, files, _ in saves])
            self._all.append(every)
            self._known |= every.keys()
            name, files, written = saves[0]
            for names in _units(files, written):
                form = re.sub(r"\d+", "#", " ".join(sorted(names)))
                required = by_form({one: files[one] for one in names})
                expected = {one: every[one] for one in required}
                counts[form] += 1
                self.units.append(Unit(number, name, expected, form, counts[form]))

    def is_complete(self, found: Tree) -> bool:
        """Whether files with these bytes are one complete checkpoint, or several of one save.

        Files that no undisturbed run has, such as temporary ones that could not be removed, do no harm.
        """
        forms = by_form({name: data for name, data in found.items() if _counts(name, data)})
        forms = {one: data for one, data in forms.items() if one in self._known} or forms
        return self._is_copy(forms) or any(
            all(one in every and _same(data, every[one]) for one, data in forms.items())
            and self._all_have(forms, number)
            for number, every in enumerate(self._all)
        )

    def _is_copy(self, forms: Tree) -> bool:
        """Whether it is one file with the bytes of a complete one, and no undisturbed run has its name."""
        if len(forms) != 1 or any(forms.keys() & unit.files.keys() for unit in self.units):
            return False
        singles = (data for unit in self.units if len(unit.files) == 1 for data in unit.files.values())
        return any(_same(next(iter(forms.values())), data) for data in singles)

    def _all_have(self, forms: Tree, save: int) -> bool:
        """Whether each unit of a save that these files have anything of is among them, and there is one."""
        touched = [unit for unit in self.units if unit.save == save and unit.files.keys() & forms.keys()]
        return bool(touched) and all(unit.has(forms) for unit in touched)

    def present(self, tree: Tree) -> list[Unit]:
        """The units that a directory has, complete."""
        forms = by_form(tree)
        return [unit for unit in self.units if unit.has(forms)]


def by_form(files: Tree) -> dict[str, bytes]:
    """Files by the form of their names; those with random names count as one, whatever their bytes."""
    forms = {name: RANDOM.sub("*", name) for name in files}
    free = {name for name, form in forms.items() if form != name or name.endswith(MEASURED)}
    return {form: b"" if name in free else files[name] for name, form in forms.items()}


def _aligned(runs: Sequence[Tree]) -> dict[str, tuple[bytes, ...]]:
    if any(run.keys() != runs[0].keys() for run in runs):
        raise ValueError(f"undisturbed runs differ in {sorted(runs[0].keys() ^ runs[1].keys())}")
    return {name: tuple(run[name] for run in runs) for name in runs[0]}


def _units(files: Tree, written: frozenset[str]) -> list[list[str]]:
    """The required names of each unit: everything below a directory, or all written files at the top."""
    kept = [name for name, data in files.items() if _counts(name, data)]
    groups = defaultdict(list)
    tops = {name.partition("/")[0] for name in written if "/" in name}
    for name in kept:
        top, below, _ = name.partition("/")
        if below and top in tops:
            groups[top].append(name)
        elif not below and name in written:
            groups[""].append(name)
    return list(groups.values())


def _counts(name: str, data: bytes) -> bool:
    return not (is_pointer(name, len(data)) or name in IGNORED_NAMES or is_unfinished(name))


@lru_cache(4096)
def _same(data: bytes, references: tuple[bytes, ...]) -> bool:
    if data in references:
        return True
    sizes = {len(reference) for reference in references}
    if len(set(references)) == 1:
        return False
    if len(sizes) > 1:
        return 0.9 * min(sizes) - NEAR_BYTES <= len(data) <= 1.1 * max(sizes) + NEAR_BYTES
    if len(data) not in sizes:
        return len(data) < SMALL_BYTES and abs(len(data) - min(sizes)) <= NEAR_BYTES
    differing = [at for at, one in enumerate(zip(*references, strict=True)) if len(set(one)) > 1]
    free = {at + near for at in differing for near in range(-NEAR_BYTES, NEAR_BYTES + 1)}
    return all(at in free for at, (a, b) in enumerate(zip(data, references[0], strict=True)) if a != b)
