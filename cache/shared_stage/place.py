"""Where a shared stage is, and whether it may be there."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from podferry.contract.errors import Problem, Refused
from podferry.contract.shared_stage import FILES_DIR, RECORD_FILE
from podferry.sidecar.config.local_path import sibling_dir
from podferry.sidecar.runtime.file_lock import try_acquire
from podferry.sidecar.staging.volume_capacity import MEMORY_FILE_SYSTEMS, mount_of

PRIVATE_MODE, PUBLIC_MODE = 0o700, 0o755
HOLDER_LOCK = "holder"
"""Locked while a holder runs."""


class SharedPlace(msgspec.Struct, frozen=True):
    """The directories of a shared stage.

    Attributes:
        directory: The stage, writable.
        view: The same directory, by way of a read-only mount.
    """

    directory: Path
    view: Path

    @property
    def files(self) -> Path:
        """The dataset."""
        return self.directory / FILES_DIR

    @property
    def record(self) -> Path:
        """What it holds, while it is complete."""
        return self.directory / RECORD_FILE

    @property
    def private(self) -> Path:
        """The holder's own files."""
        return sibling_dir(self.directory)

    def claim(self) -> int:
        """Create the directories, and lock them until this process ends.

        Returns:
            The lock's descriptor.

        Raises:
            Refused: Another holder has them, or they cannot be created.
        """
        try:
            self._make()
            (self.private / HOLDER_LOCK).touch()
            lock = try_acquire(self.private / HOLDER_LOCK)
        except OSError as error:
            remedy = "Mount its file system with the uid of this process"
            raise Refused.of(f"{self.directory} cannot be written", str(error), remedy) from error
        if lock is None:
            raise Refused.of(f"another holder keeps {self.directory}", "", "Wait for it to end")
        return lock

    def _make(self) -> None:
        for directory, mode in (
            (self.private, PRIVATE_MODE),
            (self.directory, PUBLIC_MODE),
            (self.files, PUBLIC_MODE),
        ):
            directory.mkdir(exist_ok=True)
            directory.chmod(mode)

    def problems(self) -> list[Problem]:
        """Why readers could not share it safely: after a reboot, the mounts may be missing."""
        parent, above = self.directory.parent, self.view.parent
        kind, _ = mount_of(parent)
        if kind not in MEMORY_FILE_SYSTEMS:
            remedy = f"Mount a tmpfs there: mount -t tmpfs -o size=SIZE,uid=UID,mode=0755 podferry {parent}"
            return [Problem(f"{parent} is not in memory", f"its file system is {kind or 'unknown'}", remedy)]
        bind = f"mount --bind {parent} {above}; mount -o remount,bind,ro {above}"
        if not _is_same(parent, above):
            return [Problem(f"{above} is not a mount of {parent}", "", f"Mount it: {bind}")]
        if not os.statvfs(above).f_flag & os.ST_RDONLY:
            return [Problem(f"readers could write to {above}", "it is not mounted read-only", f"Run {bind}")]
        return []


def _is_same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False
