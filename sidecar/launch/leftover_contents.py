"""What one run has left on this machine, and what of it is not known to be durable."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from podferry.contract.errors import FerryError
from podferry.contract.spec_json import decode_spec
from podferry.sidecar.checkpoint.detect.directory_scan import scan_directory
from podferry.sidecar.checkpoint.upload.hardlink_hold import HoldNote
from podferry.sidecar.config.run_directory import RunDirectory
from podferry.sidecar.launch.run_record import RunRecord
from podferry.sidecar.runtime.file_identity import Files
from podferry.sidecar.state.journal import Journal


class Leftover(msgspec.Struct, frozen=True):
    """What one run has left.

    Attributes:
        id: Names it.
        paths: Directories that `remove` removes.
        checkpoints, outputs: Directories that the trainer wrote to; they may be the user's own.
        bytes: Size of all these directories; hard links count once.
        started_at: When the run started, or its directory was made: Unix time in seconds.
        command: The trainer's words.
        destination, lineage, outputs_destination: Where it belongs; None if that is unknown.
        not_durable: Names of checkpoints, complete or not, and `outputs`, that may not be at the destination.
        trained: Whether the trainer had started.
        problem: Why it cannot be uploaded; empty if it can.
    """

    id: str
    paths: tuple[str, ...]
    bytes: int
    started_at: float
    checkpoints: str | None = None
    outputs: str | None = None
    command: tuple[str, ...] = ()
    destination: str | None = None
    lineage: str | None = None
    outputs_destination: str | None = None
    not_durable: tuple[str, ...] = ()
    trained: bool = False
    problem: str = ""


def all_paths(path: Path, record: RunRecord) -> list[str]:
    """Every directory of a run, the user's own, too."""
    used = (record.checkpoints, record.holds, record.outputs)
    return [str(path), *record.temporary, *filter(None, used)]


def leftover_of_unknown(paths: Sequence[Path]) -> Leftover:
    """Of an earlier version, or of a run whose record is gone."""
    checkpoints, outputs = (
        next((str(path / name) for path in paths if (path / name).is_dir()), None)
        for name in ("checkpoints", "outputs")
    )
    names = [name for name, _ in _present(checkpoints)]
    problem = "it is not known where it belongs: copy what you need"
    size, made_at = _bytes_below(paths), max(path.stat().st_mtime for path in paths)
    lost = (*names, *_outputs(outputs))
    return Leftover(
        RunDirectory(paths[0]).id,
        tuple(map(str, paths)),
        size,
        made_at,
        checkpoints,
        outputs,
        not_durable=lost,
        problem=problem,
    )


def leftover_of_run(path: Path, record: RunRecord) -> Leftover:
    """What the run in the directory `path` has left."""
    paths = tuple(name for name in (*record.temporary, str(path)) if Path(name).exists())
    places = [Path(name) for name in dict.fromkeys(all_paths(path, record))]
    known: dict[str, str | None] = {}
    trained, lost, problem = True, tuple[str, ...](), ""
    try:
        spec = decode_spec(record.spec.encode(), str(RunDirectory(path).record))
        known["destination"] = spec.checkpoints.uri if spec.checkpoints else None
        known["outputs_destination"] = spec.outputs.uri if spec.outputs else None
        known["lineage"] = spec.lineage
        journal = Journal(RunDirectory(path).control)
        trained = journal.agent.gate is not None
        lost = tuple(_not_durable(record, journal, RunDirectory(path).control)) if trained else ()
    except (FerryError, OSError) as error:
        problem = str(error)
    return Leftover(
        id=RunDirectory(path).id,
        paths=paths,
        bytes=_bytes_below(places),
        started_at=record.started_at,
        checkpoints=record.checkpoints,
        outputs=record.outputs,
        command=record.command,
        not_durable=lost,
        trained=trained,
        problem=problem,
        **known,
    )


def _not_durable(record: RunRecord, journal: Journal, control: Path) -> Iterator[str]:
    """Checkpoints whose present or held files are not all known to be durable, what is lost, and outputs."""
    settled = {**journal.checkpoints.ignored, **journal.checkpoints.settled}
    files = [*_present(record.checkpoints), *_held(record.holds, control)]
    names = {name for name, found in files if not set(found) <= set(settled.get(name, ()))}
    yield from sorted(names)
    yield from _outputs(record.outputs)


def _held(directory: str | None, control: Path) -> Iterator[tuple[str, Files]]:
    """What the agent held by hard links: the trainer may have removed the originals."""
    for hold in Path(directory or os.devnull).glob("[0-9]*"):
        for notes in (control / "pins", hold.parent.with_name(f"{hold.parent.name}-notes")):
            with suppress(OSError, msgspec.DecodeError):
                found = msgspec.json.decode((notes / f"{hold.name}.json").read_bytes(), type=HoldNote)
                yield found.name, found.files


def _outputs(directory: str | None) -> Sequence[str]:
    """What is uploaded of the outputs is not recorded here."""
    has_files = directory is not None and any(files for _, _, files in os.walk(directory))
    return ("outputs",) if has_files else ()


def _present(directory: str | None) -> Iterator[tuple[str, Files]]:
    """Checkpoints, complete or not, and what belongs to none and would be lost."""
    if directory and Path(directory).is_dir():
        scan = scan_directory(Path(directory))
        yield from ((name, candidate.files) for name, candidate in scan.present.items())
        yield from ((name, left.files) for name, left in scan.left_out.items() if left.loses and left.files)


def _bytes_below(places: Iterable[Path]) -> int:
    """Bytes of all files below these directories."""
    sizes = {}
    for place in places:
        for folder, _, names in os.walk(place):
            for name in names:
                with suppress(OSError):
                    found = Path(folder, name).lstat()
                    sizes[found.st_dev, found.st_ino] = found.st_size
    return sum(sizes.values())
