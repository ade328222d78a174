"""Keeps what is being uploaded from changing or going under the uploader.

A hard link survives unlinking and replacing by rename. An overwrite in place reaches it, so every reader of
a pin compares identities and fingerprints besides.

    <pins>/<number>/files/<names>    the links: they take no room, also where the volume is full
    <notes>/<number>.json            what was held, and in which version
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import structlog

from podferry.contract.errors import Changed, Corrupt, FormatTooNew, Refused
from podferry.contract.versioned_json import decode_document
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.runtime.file_identity import FileIdentity, scan

log = structlog.get_logger(__name__)

FORMAT = 1
FILES = "files"
Versions = tuple[tuple[str, FileIdentity], ...]


class HoldNote(msgspec.Struct, frozen=True):
    """What a worker that starts again must know of a pin: the files may have been overwritten since.

    Attributes:
        name: The candidate's.
        files: The candidate's, as the trainer wrote them.
        held: The same names with the identities of what is held; other inodes where they are copies.
        completed_at: When it was found whole, seconds since the epoch.
    """

    name: str
    files: Versions
    held: Versions
    completed_at: float
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class HeldCheckpoint:
    """A candidate whose files are held.

    Attributes:
        candidate: Its names and identities in the checkpoint directory.
        held: The identities that the held files must keep.
        folder: Where they are held, each under its own name.
        completed_at: When it was found whole, seconds since the epoch.
        note: The file that says so.
    """

    candidate: Candidate
    held: Versions
    folder: Path
    completed_at: float
    note: Path

    @classmethod
    def of(cls, pin: HoldNote, folder: Path, note: Path) -> HeldCheckpoint:
        """What is held in a pin's folder."""
        return cls(Candidate(pin.name, pin.files), pin.held, folder / FILES, pin.completed_at, note)

    @property
    def number(self) -> int:
        """Counts the pins of one directory: a later one is a newer checkpoint."""
        return int(self.folder.parent.name)

    def release(self) -> None:
        """Let the files go."""
        shutil.rmtree(self.folder.parent, ignore_errors=True)
        self.note.unlink(missing_ok=True)


def add_pointers(pinned: HeldCheckpoint, candidate: Candidate, texts: Mapping[str, bytes]) -> HeldCheckpoint:
    """Hold pointers beside a checkpoint's data, by copy: a trainer rewrites them for the next checkpoint.

    A kill on the way leaves a note that disagrees with what is held, and so no pin.

    Args:
        pinned: The data.
        candidate: Data and pointers.
        texts: The pointers' contents, by name.

    Raises:
        OSError: There is no room for copies; `pinned` is not to be used any more.
    """
    copies = []
    for name, text in texts.items():
        path = pinned.folder / name
        path.write_bytes(text)
        copies.append((name, FileIdentity.of(path.stat())))
    held = (*pinned.held, *copies)
    pin = HoldNote(candidate.name, candidate.files, held, pinned.completed_at)
    pinned.note.write_bytes(msgspec.json.encode(pin))
    return replace(pinned, candidate=candidate, held=held)


class HardlinkHolds:
    """The folder of all pins: numbered, each made aside and renamed in, so that a kill leaves whole ones.

    Args:
        folder: On the checkpoints' file system.
        notes: Where the notes lie; beside the folder where None. A place with room of its own: a volume that
            is full must not keep its checkpoints from becoming durable, and so from being freed.
        after: The highest number that was ever given, as far as somebody remembers it: numbers tell ages.
    """

    def __init__(self, folder: Path, notes: Path | None = None, after: int = 0) -> None:
        self._notes = notes or folder.with_name(f"{folder.name}-notes")
        for place in (folder, self._notes):
            place.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._next = 1 + max([after, *self._numbers()])

    def _numbers(self) -> list[int]:
        return sorted(int(path.name) for path in self.folder.iterdir() if path.name.isdecimal())

    def adopt(self) -> list[HeldCheckpoint]:
        """What an earlier worker held, oldest first: the trainer may have removed the originals since.

        What was overwritten in place since is let go: it is no version that anybody found whole.
        """
        for aside in self.folder.glob("*.aside"):
            shutil.rmtree(aside)
        held, known = [], set()
        for number in self._numbers():
            folder = self.folder / str(number)
            pinned = _read(folder, self._note(number))
            if pinned is None:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                held.append(pinned)
                known.add(pinned.note)
        for note in set(self._notes.iterdir()) - known:
            note.unlink()
        return held

    def _note(self, number: int) -> Path:
        return self._notes / f"{number}.json"

    def pin(self, candidate: Candidate, root: Path, now: float) -> HeldCheckpoint:
        """Hold a candidate's files.

        Raises:
            Changed: One of them is no longer what the candidate says.
            Refused: One of them cannot be held: it may not be read, or there is no room for a copy.
        """
        folder = self.folder / f"{self._next}"
        aside, note = folder.with_suffix(".aside"), self._note(self._next)
        self._next += 1
        try:
            held = tuple(
                (name, _hold(root / name, aside / FILES / name, identity))
                for name, identity in candidate.files
            )
            pin = HoldNote(candidate.name, candidate.files, held, now)
            note.write_bytes(msgspec.json.encode(pin))
        except OSError as error:
            shutil.rmtree(aside, ignore_errors=True)
            remedy = "Make its files readable for the agent; without hard links, leave room for copies"
            raise Refused.of(f"{candidate.name} cannot be held", str(error), remedy) from error
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        aside.rename(folder)
        return HeldCheckpoint.of(pin, folder, note)


def _read(folder: Path, note: Path) -> HeldCheckpoint | None:
    """A pin of an earlier worker, None where it no longer holds what it held."""
    try:
        pin = decode_document(note.read_bytes(), HoldNote, FORMAT, str(note))
    except (OSError, Corrupt, FormatTooNew) as error:
        log.warning("letting a pin go that cannot be read", reason=str(error))
        return None
    if scan(folder / FILES) != dict(pin.held):
        log.info("letting a pin go: overwritten in place while no worker ran", name=pin.name)
        return None
    return HeldCheckpoint.of(pin, folder, note)


def _hold(source: Path, target: Path, expected: FileIdentity) -> FileIdentity:
    """Link, or copy where there can be no link; the identity of what is held."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        try:
            os.link(source, target, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            raise
        except OSError as error:
            log.warning("no hard link: holding a copy", file=str(source), reason=str(error))
            shutil.copyfile(source, target)
        found = FileIdentity.of(source.stat(follow_symlinks=False))
        with target.open("rb"):
            pass  # what may not be read would stop the uploads of all others
    except (FileNotFoundError, NotADirectoryError):
        raise Changed.of(f"{source} went while it was being pinned") from None
    if found != expected:
        raise Changed.of(f"{source} changed while it was being pinned", f"{expected} became {found}")
    return FileIdentity.of(target.stat())
