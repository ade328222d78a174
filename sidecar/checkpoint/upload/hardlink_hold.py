"""Holds a checkpoint's files by hard links, so that they can be uploaded whatever the trainer does.

A hard link survives deletion and replacement by rename. An overwrite in place reaches it, so every reader of
a hold also compares identities and fingerprints.

    <holds>/<number>/files/<names>    the links: they need no space, even on a full volume
    <notes>/<number>.json             what is held, and in which version
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import msgspec
import structlog

from podferry.contract.destination.commit import Doubt
from podferry.contract.errors import Changed, Corrupt, FormatTooNew, Refused
from podferry.contract.versioned_json import decode_document
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.runtime.atomic_file import replace_file
from podferry.sidecar.runtime.file_identity import FileIdentity, Files, scan
from podferry.sidecar.runtime.link_target import LinkRefused, resolve_within

log = structlog.get_logger(__name__)

FORMAT = 1
FILES_DIR = "files"
PARTIAL_SUFFIX = ".partial"
NO_TEXTS: Mapping[str, bytes] = MappingProxyType({})


class HoldNote(msgspec.Struct, frozen=True):
    """What a restarted worker must know of a hold: its files may have been overwritten since.

    `files` are as the trainer wrote them; `held` has the identities of the held files: copies have other
    inodes. It was found complete at `completed_at`, seconds since the epoch, with these doubts.
    """

    name: str
    files: Files
    held: Files
    completed_at: float
    format: int = FORMAT
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldCheckpoint:
    """A candidate whose files are held in `directory`, each under its own name; see `HoldNote`.

    The candidate has the identities in the checkpoint directory, `files` those that held files must keep.
    """

    candidate: Candidate
    files: Files
    directory: Path
    completed_at: float
    note: Path

    @classmethod
    def of(cls, content: HoldNote, directory: Path, note: Path) -> HeldCheckpoint:
        """A hold by the content of its note."""
        candidate = Candidate(content.name, content.files, content.doubts)
        return cls(candidate, content.held, directory / FILES_DIR, content.completed_at, note)

    @property
    def number(self) -> int:
        """Counts the holds of one directory: a higher number is a newer checkpoint."""
        return int(self.directory.parent.name)

    def note_proof(self) -> None:
        """It is proven complete: a restarted worker must know, unless there is no space for the note."""
        candidate = self.candidate
        content = HoldNote(candidate.name, candidate.files, self.files, self.completed_at)
        try:
            replace_file(self.note, msgspec.json.encode(content))
        except OSError as error:
            log.warning("a proof cannot be noted", name=candidate.name, reason=str(error))

    def release(self) -> None:
        """Remove the links and the note."""
        shutil.rmtree(self.directory.parent, ignore_errors=True)
        self.note.unlink(missing_ok=True)


class HardlinkHolds:
    """The directory of all holds: numbered, each renamed into place when complete.

    Args:
        directory: On the checkpoints' file system.
        notes: By default next to the directory. It should have space of its own: a full volume must not
            keep its checkpoints from becoming durable, and thereby evictable.
        after: The highest number known to have been used: numbers show ages.
    """

    def __init__(self, directory: Path, notes: Path | None = None, after: int = 0) -> None:
        self._notes = notes or directory.with_name(f"{directory.name}-notes")
        for path in (directory, self._notes):
            path.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._next = 1 + max([after, *self._numbers()])

    def _numbers(self) -> list[int]:
        return sorted(int(path.name) for path in self.directory.iterdir() if path.name.isdecimal())

    def now_ns(self) -> int:
        """The time by the clock of the checkpoints' file system, nanoseconds since the epoch."""
        os.utime(self.directory)  # needs no space
        return self.directory.stat().st_ctime_ns

    def adopt(self) -> list[HeldCheckpoint]:
        """What an earlier worker held, oldest first: the trainer may have removed the originals since.

        What was overwritten in place since is released: it is no version that was ever found complete.
        """
        for partial in self.directory.glob("*.*"):  # earlier versions used another suffix
            if partial.stem.isdecimal():
                shutil.rmtree(partial)
        adopted = []
        for number in self._numbers():
            directory = self.directory / str(number)
            held = _read(directory, self._note(number))
            if held is None:
                shutil.rmtree(directory, ignore_errors=True)
            else:
                adopted.append(held)
        for note in set(self._notes.iterdir()) - {held.note for held in adopted}:
            note.unlink()
        return adopted

    def _note(self, number: int) -> Path:
        return self._notes / f"{number}.json"

    def link(
        self, candidate: Candidate, root: Path, now: float, texts: Mapping[str, bytes] = NO_TEXTS
    ) -> HeldCheckpoint:
        """Hold a candidate's files in `root`, the checkpoint directory; `now` is seconds since the epoch.

        `texts` are pointer files by name, held as copies: trainers rewrite them for the next checkpoint.
        Without space for a copy a pointer is linked, too.

        Raises:
            Changed: A file is no longer what the candidate says.
            Refused: A file cannot be held: it is not readable, or there is no space for a copy.
        """
        directory = self.directory / f"{self._next}"
        partial, note = directory.with_suffix(PARTIAL_SUFFIX), self._note(self._next)
        self._next += 1
        try:
            files = tuple(
                (name, _hold(_real(root, name), partial / FILES_DIR / name, identity, texts.get(name)))
                for name, identity in candidate.files
            )
            content = HoldNote(candidate.name, candidate.files, files, now, doubts=candidate.doubts)
            note.write_bytes(msgspec.json.encode(content))
        except OSError as error:
            shutil.rmtree(partial, ignore_errors=True)
            remedy = "Make its files readable for the agent; without hard links, leave room for copies"
            raise Refused.of(f"{candidate.name} cannot be held", str(error), remedy) from error
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        partial.rename(directory)
        return HeldCheckpoint.of(content, directory, note)


def _read(directory: Path, note: Path) -> HeldCheckpoint | None:
    """A hold of an earlier worker; None if its files are no longer what was held."""
    try:
        content = decode_document(note.read_bytes(), HoldNote, FORMAT, str(note))
    except (OSError, Corrupt, FormatTooNew) as error:
        log.warning("releasing a hold whose note cannot be read", reason=str(error))
        return None
    if scan(directory / FILES_DIR) != dict(content.held):
        log.info("releasing a hold: overwritten in place while no worker ran", name=content.name)
        return None
    return HeldCheckpoint.of(content, directory, note)


def _real(root: Path, name: str) -> Path:
    """The path of a file without links; what was replaced since the scan has another identity."""
    try:
        return root / resolve_within(root, name)
    except LinkRefused as refusal:
        raise Changed.of(f"{root / name} changed while it was being linked", str(refusal)) from refusal


def _hold(source: Path, target: Path, expected: FileIdentity, text: bytes | None) -> FileIdentity:
    """Hold one file; returns the identity of the held file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if text is not None:
        try:
            target.write_bytes(text)
            return FileIdentity.of(target.stat())
        except OSError as error:
            log.info("linking a pointer: it cannot be copied", reason=str(error))
            target.unlink(missing_ok=True)
    return _link(source, target, expected)


def _link(source: Path, target: Path, expected: FileIdentity) -> FileIdentity:
    """Link, or copy if links are impossible; returns the identity of the held file."""
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
            pass  # an unreadable file would stop the uploads of all others
    except (FileNotFoundError, NotADirectoryError):
        raise Changed.of(f"{source} was removed while it was being linked") from None
    if found != expected:
        raise Changed.of(f"{source} changed while it was being linked", f"{expected} became {found}")
    return FileIdentity.of(target.stat())
