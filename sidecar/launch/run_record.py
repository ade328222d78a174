"""What a local run is, as its directory records it: what a killed run left can be shown and uploaded."""

from __future__ import annotations

from pathlib import Path

import msgspec

from podferry.contract.versioned_json import decode_document
from podferry.sidecar.config.agent_config import ProgramRun
from podferry.sidecar.launch.mount_view import MountView
from podferry.sidecar.runtime.atomic_file import replace_file

FORMAT = 1


class RunRecord(msgspec.Struct, frozen=True):
    """One run.

    Attributes:
        command: The trainer's words.
        spec: The ferry spec as JSON.
        started_at: Unix time in seconds.
        data: Directory of the data and checkpoints that the user gave no directory; usually in memory.
        checkpoints, holds, outputs: As in `podferry.sidecar.config.directories.Directories`.
        temporary: The same; all that may be removed.
        run_id: KFP's run id; None outside KFP.
        polling: Scan at intervals.
        program: What its commits record of it.
        view: From where it saw its directories.
        checkpoints_secret, outputs_secret: As in `podferry.sidecar.launch.secret_dirs.SecretDirs`.
    """

    command: tuple[str, ...]
    spec: str
    started_at: float
    data: str
    checkpoints: str | None = None
    holds: str | None = None
    outputs: str | None = None
    temporary: tuple[str, ...] = ()
    run_id: str | None = None
    polling: bool = False
    checkpoints_secret: str | None = None
    outputs_secret: str | None = None
    program: ProgramRun | None = None
    view: MountView = MountView()
    format: int = FORMAT


def read_record(path: Path) -> RunRecord:
    """Read a record; raises `OSError`, `Corrupt` or `FormatTooNew`."""
    return decode_document(path.read_bytes(), RunRecord, FORMAT, str(path))


def write_record(path: Path, record: RunRecord) -> None:
    """Write a record; raises `OSError`."""
    replace_file(path, msgspec.json.encode(record))


def text_or_none(path: Path | None) -> str | None:
    """A path in a record."""
    return None if path is None else str(path)
