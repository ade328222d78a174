"""Files of real libraries, cut short, rewritten without a member, or interrupted while they are written."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from podferry.sidecar.checkpoint.detect.format_checks import check_format
from podferry.sidecar.checkpoint.detect.formats.verdict import FormatVerdict
from tests.support.package_graph import ROOT

SAMPLES = ROOT / "tests" / "data" / "formats"
"""See the README there."""


class Interrupted(Exception):
    """What a failing file raises."""


class FailingFile(io.FileIO):
    """Fails at one write, as by Ctrl-C; what the writer does afterwards to close its file succeeds."""

    def __init__(self, path: Path, failing_write: int, written_share: float) -> None:
        super().__init__(path, "w+")
        self.writes, self._failing, self._share = 0, failing_write, written_share

    def write(self, data: bytes) -> int:
        view = memoryview(data).cast("B")
        self.writes += bool(view.nbytes)  # after an empty one, the file may be whole
        if self.writes != self._failing:
            return super().write(view)
        super().write(view[: int(view.nbytes * self._share)])
        raise Interrupted


def interrupted_saves(path: Path, save: Callable[[io.FileIO], None], share: float = 0.5) -> Iterator[int]:
    """Interrupt a writer at each of its writes, and yield the number of the write."""
    number = 0
    while True:
        number += 1
        with FailingFile(path, number, share) as file:
            try:
                save(file)
            except Interrupted:
                pass
            else:
                return
        yield number


def cut(path: Path, data: bytes, lengths: Iterable[int] | None = None) -> list[tuple[int, FormatVerdict]]:
    """The verdicts on a file cut to these lengths, by default to each."""
    found = []
    path.write_bytes(data)
    for length in sorted(range(len(data)) if lengths is None else lengths, reverse=True):
        os.truncate(path, length)
        found.append((length, check_format(path)))
    return found


def passed(verdicts: Iterable[tuple[int, FormatVerdict]]) -> list[int]:
    """The lengths at which no defect was seen."""
    return [length for length, verdict in verdicts if verdict.defect is None]


def archive_without(archive: Path, *names: str) -> bytes:
    """An archive without some of its members, with a directory that agrees; names end like these."""
    data = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(data, "w") as new:
        for member in old.infolist():
            if not member.filename.endswith(names):
                new.writestr(member, old.read(member))
    return data.getvalue()


def archive_with(archive: Path, name: str, content: bytes) -> bytes:
    """An archive with another content of one member."""
    data = io.BytesIO()
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(data, "w") as new:
        for member in old.infolist():
            new.writestr(member, content if member.filename == name else old.read(member))
    return data.getvalue()
