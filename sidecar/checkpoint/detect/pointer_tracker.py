"""Remembers which pointer file named which checkpoint: it may move on before that checkpoint is held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from podferry.sidecar.checkpoint.detect.candidate import Candidate, candidate_name
from podferry.sidecar.checkpoint.detect.change_tracker import TrackedFile
from podferry.sidecar.checkpoint.detect.pointer_files import POINTERS, find_checkpoint_name, is_pointer
from podferry.sidecar.runtime.file_identity import FileIdentity


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer file, as it was read while it named a checkpoint."""

    identity: FileIdentity
    text: bytes


def read_pointer(root: Path, name: str, identity: FileIdentity, checkpoint: str) -> Pointer | None:
    """The pointer, or None if it has changed since or names another checkpoint."""
    try:
        text = (root / name).read_bytes()
        found = FileIdentity.of((root / name).stat(follow_symlinks=False))
    except OSError:
        return None
    names_it = find_checkpoint_name(text.decode(errors="replace"), {checkpoint}) is not None
    return Pointer(identity, text) if found == identity and names_it else None


class PointerTracker:
    """The latest-checkpoint pointers of one directory.

    Attributes:
        pointers: By checkpoint, then by the pointer's name.
    """

    def __init__(self, root: Path) -> None:
        self.pointers: dict[str, dict[str, Pointer]] = {}
        self._root = root

    def update(
        self, files: Mapping[str, TrackedFile], present: Mapping[str, Candidate], now: float | None
    ) -> None:
        """Record a scan.

        A pointer is read once it was closed, or is unchanged since an earlier scan. Removed ones are dropped.

        Args:
            files: All files in the directory.
            present: The checkpoints that they form.
            now: On the clock of `files`; None after the last write.
        """
        current = {name for name in POINTERS if name in files and is_pointer(name, files[name].identity.size)}
        self.pointers = {
            checkpoint: {name: pointer for name, pointer in known.items() if name in current}
            for checkpoint, known in self.pointers.items()
            if checkpoint in present
        }
        for candidate in present.values():
            for name, _ in candidate.files:
                # A file that names no checkpoint is one itself.
                if name in current and candidate_name(name) != candidate.name:
                    self._read(candidate.name, name, files[name], now)

    def _read(self, checkpoint: str, name: str, file: TrackedFile, now: float | None) -> None:
        known = self.pointers.setdefault(checkpoint, {})
        settled = now is None or file.closed or file.since < now
        if settled and (name not in known or known[name].identity != file.identity):
            pointer = read_pointer(self._root, name, file.identity, checkpoint)
            if pointer is not None:
                known[name] = pointer

    def texts(self, candidate: Candidate) -> dict[str, bytes]:
        """The contents of a candidate's pointers, if read with the identity that the candidate has."""
        known = self.pointers.get(candidate.name, {})
        return {
            name: known[name].text
            for name, identity in candidate.files
            if name in known and known[name].identity == identity
        }

    def with_moved_pointers(self, candidate: Candidate) -> Candidate:
        """The candidate plus the pointers that named it and have moved on since."""
        own, known = dict(candidate.files), self.pointers.get(candidate.name, {})
        moved = tuple((name, pointer.identity) for name, pointer in known.items() if name not in own)
        return Candidate(candidate.name, candidate.files + moved, candidate.doubts)
