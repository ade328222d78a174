"""Remembers each pointer with the checkpoint that it names: it may move on before that is pinned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from podferry.sidecar.checkpoint.detect.candidate import Candidate, candidate_name
from podferry.sidecar.checkpoint.detect.change_tracker import SeenFile
from podferry.sidecar.checkpoint.detect.pointer_files import POINTERS, is_pointer, named
from podferry.sidecar.runtime.file_identity import FileIdentity


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer as it was while it named a checkpoint.

    Attributes:
        identity: Of the file that was read.
        text: All that stood in it.
    """

    identity: FileIdentity
    text: bytes


def read_pointer(root: Path, name: str, identity: FileIdentity, checkpoint: str) -> Pointer | None:
    """The pointer in that identity; None where it is another one by now, or names another checkpoint."""
    try:
        text = (root / name).read_bytes()
        found = FileIdentity.of((root / name).stat(follow_symlinks=False))
    except OSError:
        return None
    names_it = named(text.decode(errors="replace"), {checkpoint}) is not None
    return Pointer(identity, text) if found == identity and names_it else None


def data(candidate: Candidate) -> dict[str, FileIdentity]:
    """A checkpoint's files without the pointers, which come and go."""
    return {name: identity for name, identity in candidate.files if not is_pointer(name, identity.size)}


def _owned(present: Iterable[Candidate], pointers: set[str]) -> list[tuple[str, str]]:
    """(checkpoint, pointer) of each pointer that belongs to a checkpoint; one that names none is its own."""
    return [
        (candidate.name, name)
        for candidate in present
        for name, _ in candidate.files
        if name in pointers and candidate_name(name) != candidate.name
    ]


class PointerTracker:
    """The pointers of one directory, as they were.

    Attributes:
        held: By checkpoint, then by the pointer's name.
    """

    def __init__(self, root: Path) -> None:
        self.held: dict[str, dict[str, Pointer]] = {}
        self._root = root

    def read(self, seen: Mapping[str, SeenFile], present: Mapping[str, Candidate], now: float | None) -> None:
        """Take in what lies there.

        A pointer is read once it was closed, or has been the same since an earlier look. One that was
        removed is forgotten.

        Args:
            seen: The files.
            present: The checkpoints that they form.
            now: On the clock of `seen`; None where nobody writes any more.
        """
        lying = {name for name in POINTERS if name in seen and is_pointer(name, seen[name].identity.size)}
        self.held = {
            checkpoint: {name: pointer for name, pointer in held.items() if name in lying}
            for checkpoint, held in self.held.items()
            if checkpoint in present
        }
        for checkpoint, name in _owned(present.values(), lying):
            file, held = seen[name], self.held.setdefault(checkpoint, {})
            settled = now is None or file.closed or file.since < now
            if settled and (name not in held or held[name].identity != file.identity):
                pointer = read_pointer(self._root, name, file.identity, checkpoint)
                if pointer is not None:
                    held[name] = pointer

    def texts(self, candidate: Candidate) -> dict[str, bytes]:
        """What stood in those of a candidate's pointers that were read in the identity that it has."""
        read = self.held.get(candidate.name, {})
        return {
            name: read[name].text
            for name, identity in candidate.files
            if name in read and read[name].identity == identity
        }

    def completed(self, candidate: Candidate) -> Candidate:
        """The candidate with the pointers that named it and have moved on since."""
        own, read = dict(candidate.files), self.held.get(candidate.name, {})
        moved = tuple((name, pointer.identity) for name, pointer in read.items() if name not in own)
        return Candidate(candidate.name, candidate.files + moved)
