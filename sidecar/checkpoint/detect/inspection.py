"""Gathers the evidence about a candidate: from its files, the watch, open files and the history."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from podferry.sidecar.checkpoint.detect.candidate import Candidate, Version
from podferry.sidecar.checkpoint.detect.change_times import ChangeTimes
from podferry.sidecar.checkpoint.detect.evidence import Evidence, Seen, gather
from podferry.sidecar.checkpoint.detect.former_names import without_moves_of_checkpoints
from podferry.sidecar.checkpoint.detect.history import SaveHistory, overwritten_files
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles


class Inspection:
    """Looks at candidates.

    Args:
        root: The checkpoint directory.
        history: The saves before.
        open_files: Says which files are open for writing; None if nobody asks.
        whole: No other pod has a part of any checkpoint.

    Attributes:
        times: Which change times show a rename.
    """

    def __init__(
        self, root: Path, history: SaveHistory, open_files: OpenFiles | None, *, whole: bool
    ) -> None:
        self.times = ChangeTimes()
        self._root, self._history, self._open_files, self._whole = root, history, open_files, whole
        self._renamed_open: set[Version] = set()

    def begin(self, present: Iterable[Candidate]) -> None:
        """Begin a scan that found these."""
        if self._renamed_open:
            self._renamed_open &= {one.version for one in present}

    async def defect(self, candidate: Candidate) -> str | None:
        """Why a candidate is certainly incomplete by the format of one of its files."""
        # The history is not asked: it may have a whole archive read, for no defect.
        return (await self._read(candidate, Seen())).defect

    async def gather(self, candidate: Candidate, seen: Seen) -> Evidence:
        """The evidence, with what the watch has seen."""
        seen = without_moves_of_checkpoints(seen, candidate, self._history.is_known)
        same_name = self._history.of_name(candidate.name)
        seen = replace(seen, overwritten=overwritten_files(candidate, same_name, seen.emptied))
        found = await asyncio.to_thread(self._with_open_files, candidate, await self._read(candidate, seen))
        if found.renamed and found.open:
            self._renamed_open.add(candidate.version)
        return replace(found, renamed=found.renamed and candidate.version not in self._renamed_open)

    async def is_open(self, candidate: Candidate) -> bool:
        """Whether a process is known to have a file of it open for writing."""
        return bool((await asyncio.to_thread(self._with_open_files, candidate, Evidence())).open)

    async def _read(self, candidate: Candidate, seen: Seen) -> Evidence:
        return await asyncio.to_thread(gather, self._root, candidate, self.times, seen, whole=self._whole)

    def _with_open_files(self, candidate: Candidate, found: Evidence) -> Evidence:
        """Ask the machine which files are still open: one that is known not to be needs no close."""
        if self._open_files is None or found.defect is not None:
            return found
        paths = {self._root / name: name for name in candidate.data_files}
        answers = self._open_files.look(paths)
        opened = frozenset(paths[path] for path, is_open in answers.items() if is_open)
        shut = frozenset(paths[path] for path, is_open in answers.items() if is_open is False)
        return replace(found, open=opened, unclosed=found.unclosed - shut)
